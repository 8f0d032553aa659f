"""A driver of cinder-volume whose volumes have no content."""

from __future__ import annotations

from typing import Any

from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class EmptyVolumes(driver.VolumeDriver):
    """Does nothing, as Nova's fake driver, which never reads a volume."""

    VERSION = "1.0"

    def check_for_setup_error(self) -> None:
        """Need nothing."""

    def create_volume(self, volume: Any) -> dict[str, Any]:
        return {"provider_location": "minicloud"}

    def delete_volume(self, volume: Any) -> None:
        """Keep nothing."""

    def ensure_export(self, context: Any, volume: Any) -> None:
        """Export nothing."""

    def create_export(
        self, context: Any, volume: Any, connector: Any, initiator_data: Any = None
    ) -> None:
        """Export nothing."""

    def remove_export(self, context: Any, volume: Any) -> None:
        """Export nothing."""

    def initialize_connection(
        self, volume: Any, connector: Any, initiator_data: Any = None
    ) -> dict[str, Any]:
        return {"driver_volume_type": "fake", "data": {"volume_id": volume.id}}

    def terminate_connection(self, volume: Any, connector: Any, **kwargs: Any) -> None:
        """Connect nothing."""

    def _update_volume_stats(self) -> None:
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "minicloud",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "total_capacity_gb": "infinite",
            "free_capacity_gb": "infinite",
        }
