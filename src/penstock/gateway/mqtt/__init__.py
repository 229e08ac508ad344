"""MQTT 3.1, 3.1.1 and 5: packets ↔ calls of the broker."""

from __future__ import annotations

from penstock.gateway.mqtt.gateway import MqttGateway
from penstock.gateway.mqtt.hub import MqttHub

__all__ = ["MqttGateway", "MqttHub"]
