"""Which changes of the code are no mutants, because a running program cannot show them."""

from __future__ import annotations

import ast


class _Normalizer(ast.NodeTransformer):
    """Leaves out what does nothing in a running program.

    These are annotations, their imports, protocols, and that a dataclass is frozen: mypy checks
    that nothing is assigned to it.
    """

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any("Protocol" in ast.dump(base) for base in node.bases):
            return ast.Pass()
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                decorator.keywords = [word for word in decorator.keywords if word.arg != "frozen"]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if "TYPE_CHECKING" in ast.dump(node.test):
            return ast.Pass()
        return self.generic_visit(node)


def normalize(code: str) -> str:
    """Return the same text for two codes that do the same in a running program."""
    return ast.dump(_Normalizer().visit(ast.parse(code)))
