"""The location of everything. Nothing is ever written outside of the two folders named here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from minicloud_ctl import releases
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.releases import SOURCE, Release

REPOSITORY = SOURCE.parent.parent

# Characters that would end a path inside an SQLAlchemy URL, or that oslo.config would substitute.
FORBIDDEN = frozenset("?#%$\n\"'")


@dataclass(frozen=True)
class Paths:
    """``home`` is the state folder, ``venv`` the virtual environment.

    Several homes can use one venv.
    """

    home: Path
    venv: Path
    release: Release = releases.NEWEST

    @classmethod
    def choose(cls, home: str | None) -> Paths:
        """Choose from ``--home``, then the environment, then ``.minicloud`` in the repository.

        The variables are $MINICLOUD_HOME, $MINICLOUD_VENV and $MINICLOUD_RELEASE.
        """
        default = REPOSITORY / ".minicloud"
        release = releases.choose()
        paths = cls(
            Path(home or os.environ.get("MINICLOUD_HOME") or default).absolute(),
            Path(os.environ.get("MINICLOUD_VENV") or default / release.venv).absolute(),
            release,
        )
        for path in (paths.home, paths.venv):
            if FORBIDDEN & set(str(path)):
                raise MinicloudError(
                    f"The path {path} holds a character that cannot stand in a database URL: one "
                    "of ? # % $ or a quote."
                )
        return paths

    @property
    def state(self) -> Path:
        return self.home / "state.json"

    @property
    def etc(self) -> Path:
        return self.home / "etc"

    @property
    def databases(self) -> Path:
        return self.home / "databases"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def plugins(self) -> Path:
        return self.home / "plugins"

    @property
    def scenarios(self) -> Path:
        return self.home / "scenarios"

    @property
    def clouds_yaml(self) -> Path:
        return self.home / "clouds.yaml"

    @property
    def cache(self) -> Path:
        """Where the services' libraries keep what they would put into the user's home."""
        return self.home / "cache"

    def service(self, name: str) -> Path:
        """The files of one of the services, besides its database."""
        return self.home / "services" / name

    def made(self) -> list[Path]:
        """Return everything that a minicloud has written, except the virtual environment."""
        folders = [self.etc, self.databases, self.logs, self.run, self.plugins, self.scenarios]
        folders += [self.cache, self.home / "services"]
        found = [*folders, self.state, self.clouds_yaml, self.install_log, self.lock]
        return [path for path in found if path.exists()]

    @property
    def install_log(self) -> Path:
        return self.home / "install.log"

    def part(self, name: str) -> Path:
        """The folder of a real part's packages, beside the virtual environment.

        Its processes find it through PYTHONPATH; no other process has it there.
        """
        return self.venv.with_name(f"{self.venv.name}-{name}")

    @property
    def lock(self) -> Path:
        return self.home / ".lock"

    @property
    def templates(self) -> Path:
        """Migrated, empty databases.

        They depend on nothing but the installed versions, so they are kept with them.
        """
        return self.venv / "minicloud-databases"

    def template(self, name: str, part: str = "") -> Path:
        folder = self.part(part) / "minicloud-databases" if part else self.templates
        return folder / f"{name}.db"

    def compute(self, host: str) -> Path:
        """The ``state_path`` of one nova-compute: its ``compute_id`` file must survive restarts."""
        return self.service(f"nova-compute-{host}")

    def program(self, name: str) -> str:
        return str(self.venv / "bin" / name)

    def database(self, name: str) -> Path:
        return self.databases / f"{name}.db"

    def database_url(self, name: str) -> str:
        return f"sqlite:///{self.database(name)}?plugin=minicloud_sqlite&timeout=60"
