"""Who may see, change and use what, by AWX's roles."""

import dataclasses as d

from .store import KINDS, Entry, Store


@d.dataclass(frozen=True)
class User:
    """The owner of a token: the ids of the organizations that he administers, and of what he uses.

    A token with the scope `read` cannot write.
    """

    system_administrator: bool = False
    administers: frozenset[int] = frozenset()
    uses: frozenset[int] = frozenset()
    scope: str = "write"


class Rights:
    """The rights of one user."""

    def __init__(self, store: Store, user: User) -> None:
        self._store, self._user = store, user

    def may_change(self, key: int) -> bool:
        if self._user.system_administrator:
            return True
        return self._store.organization_of(key) in self._user.administers

    def may_use(self, key: int) -> bool:
        """Tell whether the user may give an object to another one.

        An administrator of an organization has no role for instance groups of himself.
        """
        return self.may_change(key) or key in self._user.uses

    def may_see(self, key: int) -> bool:
        kind, entry = self._store.kind_of(key), self._store.get(key)
        # By default, an administrator of any organization sees all teams.
        if kind in ("credential_types", "teams"):
            return True
        shared = kind == "execution_environments" and entry["organization"] is None
        return shared or self.may_use(key)

    def may_give(self, kind: str, fields: Entry) -> bool:
        """Tell whether the user may create or change an object with these fields."""
        used = [fields[field] for field in KINDS[kind].used if fields.get(field)]
        return all(map(self.may_use, used))

    def may_create(self, kind: str, fields: Entry) -> bool:
        if "organization" in KINDS[kind].used and not fields.get("organization"):
            return self._user.system_administrator
        return self.may_give(kind, fields)

    def may_associate(self, key: int, link: str, other: int) -> bool:
        """Tell whether the user may associate an object with another, or end that."""
        if link == "roles":
            # The administrator of an object grants its roles, to teams that he can see.
            return self.may_change(other)
        if link in ("credentials", "instance_groups") and not self.may_use(other):
            return False
        return self.may_change(key)
