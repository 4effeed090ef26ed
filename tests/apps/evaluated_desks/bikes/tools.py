"""A city's bikes."""

from __future__ import annotations


class Bikes:
    def __init__(self) -> None:
        self.free = {"Harbour": 4, "Museum": 0}
        self.out = {"B-118"}
        self.defects: dict[str, str] = {}

    def free_bikes(self, station: str) -> dict[str, str | int]:
        """Look up how many bikes are free at a station.

        Args:
            station: The name of the station, such as Harbour.
        """
        if station not in self.free:
            raise ValueError(f"there is no station {station}")
        return {"station": station, "free_bikes": self.free[station]}

    def rent_bike(self, bike_number: str) -> dict[str, str]:
        """Rent a bike.

        Args:
            bike_number: The number on the bike, like B-204.
        """
        if bike_number not in ("B-204", "B-205") or bike_number in self.out:
            raise ValueError(f"bike {bike_number} cannot be rented")
        self.out.add(bike_number)
        return {"bike_number": bike_number, "lock_code": "4711"}

    def return_bike(self, bike_number: str) -> dict[str, str]:
        """End the rental of a bike.

        Args:
            bike_number: The number on the bike, like B-204.
        """
        if bike_number not in self.out:
            raise ValueError(f"bike {bike_number} is not rented")
        self.out.remove(bike_number)
        return {"bike_number": bike_number, "status": "returned", "price": "3 euros"}

    def report_defect(self, bike_number: str, defect: str) -> dict[str, str]:
        """Report that a bike is broken.

        Args:
            bike_number: The number on the bike, like B-204.
            defect: What is broken.
        """
        self.defects[bike_number] = defect
        return {"bike_number": bike_number, "status": "will be repaired"}


_bikes = Bikes()
free_bikes, rent_bike, return_bike = _bikes.free_bikes, _bikes.rent_bike, _bikes.return_bike
report_defect = _bikes.report_defect
