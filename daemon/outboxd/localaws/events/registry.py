"""All event buses of all regions."""

from outboxd.localaws.events.arns import DEFAULT_BUS, bus_arn, bus_name, bus_place
from outboxd.localaws.events.bus import Bus, Rule
from outboxd.localaws.events.errors import bus_exists, bus_not_found, rule_not_found


class Registry:
    """Finds, makes and removes buses; every region has a default one from the start."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._buses: dict[tuple[str, str], Bus] = {}

    def find(self, name_or_arn: str | None, region: str) -> Bus | None:
        place = bus_place(name_or_arn, region)
        if place is None:
            return None
        if place[1] == DEFAULT_BUS and place not in self._buses:
            self._add(place, None, self._started_at)
        return self._buses.get(place)

    def get(self, name_or_arn: str | None, region: str) -> Bus:
        """Raises ResourceNotFoundException."""
        bus = self.find(name_or_arn, region)
        if bus is None:
            raise bus_not_found(bus_name(name_or_arn))
        return bus

    def rule(self, name: str, bus_name_or_arn: str | None, region: str) -> Rule:
        """Raises ResourceNotFoundException."""
        bus = self.get(bus_name_or_arn, region)
        rule = bus.rules.get(name)
        if rule is None:
            raise rule_not_found(name, bus.name)
        return rule

    def create(self, region: str, name: str, description: str | None, now: float) -> Bus:
        """Raises ResourceAlreadyExistsException."""
        if self.find(name, region) is not None:
            raise bus_exists(name)
        return self._add((region, name), description, now)

    def delete(self, bus: Bus) -> None:
        del self._buses[bus.region, bus.name]

    def buses(self, region: str) -> list[Bus]:
        """By name."""
        self.find(DEFAULT_BUS, region)
        return [self._buses[place] for place in sorted(self._buses) if place[0] == region]

    def _add(self, place: tuple[str, str], description: str | None, now: float) -> Bus:
        region, name = place
        bus = Bus(
            region=region,
            name=name,
            arn=bus_arn(region, name),
            description=description,
            created_at=now,
            rules={},
        )
        self._buses[place] = bus
        return bus
