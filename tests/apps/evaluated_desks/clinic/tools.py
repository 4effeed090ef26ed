"""A clinic's appointments."""

from __future__ import annotations


class Clinic:
    def __init__(self) -> None:
        self.appointments = {
            "AP-301": {"day": "Tuesday", "doctor": "Doctor Weber"},
            "AP-302": {"day": "Friday", "doctor": "Doctor Nowak"},
        }

    def find_appointment(self, appointment_number: str) -> dict[str, str]:
        """Look up an appointment.

        Args:
            appointment_number: The number of the appointment, like AP-301.
        """
        if appointment_number not in self.appointments:
            raise ValueError(f"there is no appointment {appointment_number}")
        return {"appointment_number": appointment_number, **self.appointments[appointment_number]}

    def cancel_appointment(self, appointment_number: str) -> dict[str, str]:
        """Cancel an appointment.

        Args:
            appointment_number: The number of the appointment, like AP-301.
        """
        if self.appointments.pop(appointment_number, None) is None:
            raise ValueError(f"there is no appointment {appointment_number}")
        return {"appointment_number": appointment_number, "status": "cancelled"}

    def book_appointment(self, patient_name: str, day: str) -> dict[str, str]:
        """Book an appointment.

        Args:
            patient_name: The name of the patient.
            day: The day of the week, such as Monday.
        """
        if day in ("Saturday", "Sunday"):
            raise ValueError("the clinic is closed at the weekend")
        self.appointments["AP-303"] = {"day": day, "doctor": "Doctor Nowak"}
        return {"appointment_number": "AP-303", "patient": patient_name, **self.appointments["AP-303"]}


_clinic = Clinic()
find_appointment, cancel_appointment = _clinic.find_appointment, _clinic.cancel_appointment
book_appointment = _clinic.book_appointment
