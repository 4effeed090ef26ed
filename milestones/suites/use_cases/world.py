"""The worlds of five use cases: what the tools of their agents find and do, and how they fail.

An object is one desk in one conversation, with a copy of the records in records.yaml. Reading a record that is listed
as `slow` fails at the first attempt, as if a service had timed out.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Annotated, Any

import yaml

from arq_graph.milestones.users.agent_message import split_into_words

_RECORDS = yaml.safe_load(Path(__file__).with_name("records.yaml").read_text(encoding="utf-8"))

Record = dict[str, Any]
Name = Annotated[str, "The customer's first and last name."]
Order = Annotated[str, "The number of the order, like KC-2041."]
Sku = Annotated[str, "The number of the article, like SKU-114."]
Contract = Annotated[str, "The number of the contract, like FN-30518."]
Modem = Annotated[str, "The number of the modem, like MDM-7104."]
Area = Annotated[str, "The area, such as Northgate."]
Card = Annotated[str, "The number on the card, like GFT-551208."]
Purchase = Annotated[str, "The number of the purchase, like QB-7021."]
Parcel = Annotated[str, "The tracking number, like HP-640112."]
Number = Annotated[str, "The number of what it is about: of an order, a card or a parcel."]
Detail = Annotated[str, "What tells it from others: an article, a title, a sender, a branch or an area."]
Quantity = Annotated[int, "How many, 1 or more."]
Amount = Annotated[float, "How much, up to 100.00."]
Time = Annotated[str, "One of the listed times, such as Monday 08:00."]
Pin = Annotated[str, "The PIN of the card, like 1234."]
Bill = Annotated[str, "The number of the order, like LB-3301."]
Receipt = Annotated[str, "The number on the receipt, like RC-4471."]
Address = Annotated[str, "The new address: street, number and town."]


class _Desk:
    """A desk with records of its own; `seed` decides what happens by chance."""

    def __init__(self, seed: int = 0) -> None:
        self._records = deepcopy(_RECORDS[type(self).__name__])
        self._slow = set(self._records["slow"])
        self._chance = Random(seed)

    def find_by_name(self, name: Name, detail: Detail) -> Record:
        """Find the number of what a customer has here, where the customer does not know it."""
        kind, key = self._records["by_name"]
        detail_words = set(split_into_words(detail))
        for number, record in self._records[kind].items():
            has_name = record["name"].casefold() == name.casefold()
            if has_name and detail_words and detail_words.issubset(_list_words(record)):
                return {"found": True, key: number}
        return {"found": False, key: None}

    def hand_over(self) -> str:
        """Hand the conversation over to a colleague, who goes on with it."""
        return "A colleague takes over within ten minutes."

    def open_case(self, number: Number) -> Record:
        """Have it examined where the customer says otherwise than the records, or something is lost."""
        self._read(self._records["by_name"][0], number)
        return {"case": f"CASE-{number[-4:]}", "answer_within": "5 working days"}

    def _select(self, kind: str, number: str, *keys: str) -> Record:
        record = self._read(kind, number)
        return {key: record[key] for key in keys if key in record}

    def _read(self, kind: str, number: str) -> Any:
        if number in self._slow:
            self._slow.remove(number)
            raise TimeoutError("there was no answer within 10 seconds; try again")
        if number not in self._records[kind]:
            raise LookupError(f"there is no {number} among the {kind}")
        return self._records[kind][number]


def _list_words(record: Record) -> list[str]:
    """Return the words by which a customer may identify a record: its articles, title, sender, branch or area."""
    parts = [line["item"] for line in record.get("lines", ())]
    for key in ("title", "sender", "branch", "area"):
        parts.append(record.get(key, ""))
    return split_into_words(" ".join(parts))


class OrderDesk(_Desk):
    """A shop for kitchenware, whose parcels do not always hold what was ordered."""

    def get_order(self, order_id: Order) -> Record:
        """Look an order up: what was ordered and what was charged."""
        return {"order_id": order_id, **self._select("orders", order_id, "lines", "payments")}

    def get_packing_record(self, order_id: Order) -> Record:
        """Look up what was packed for an order, where each parcel is, and whether it was packed as ordered."""
        return self._select("orders", order_id, "parcels", "check")

    def check_stock(self, sku: Sku) -> Record:
        """Look up how many of an article can be sent."""
        available = self._read("stock", sku)
        return {"article": sku, "available": available, "sold_out": not available}

    def send_replacement(self, order_id: Order, sku: Sku, quantity: Quantity) -> str:
        """Send an article of an order once more, free of charge."""
        order = self._read("orders", order_id)
        ordered = sum(line["quantity"] for line in order["lines"] if line["sku"] == sku)
        if not 1 <= quantity <= ordered:
            raise ValueError(f"no {quantity} of {sku} were ordered")
        if self._read("stock", sku) < quantity:
            raise ValueError(f"{sku} is out of stock")
        if "weight as expected" in str(order["parcels"]):
            raise PermissionError("it was weighed as complete: only a supervisor may replace it")
        if sku in order.setdefault("replaced", []):
            raise ValueError(f"{sku} is sent once more already")
        order["replaced"].append(sku)
        self._records["stock"][sku] -= quantity
        return f"{quantity} of {sku} will be sent tomorrow, free of charge."

    def refund(self, order_id: Order, amount: Amount) -> str:
        """Pay money back for an order."""
        if amount > 100:
            raise PermissionError("only a supervisor may refund more than 100.00")
        order = self._read("orders", order_id)
        if not 0 < amount <= sum(payment["amount"] for payment in order["payments"]):
            raise ValueError(f"{amount:.2f} is not between 0 and what was paid")
        if "refunded" in order:
            raise ValueError(f"{order['refunded']:.2f} were refunded already")
        order["refunded"] = amount
        return f"{amount:.2f} will be refunded within three working days."

    def create_return_label(self, order_id: Order, sku: Sku) -> Record:
        """Make a label with which the customer sends a wrong article back, free of charge."""
        self._read("orders", order_id)
        return {"label": f"RET-{order_id[-4:]}", "valid_until": "2026-12-31", "article": sku}


class InternetDesk(_Desk):
    """A provider of internet connections, some of which are slow or down."""

    def find_contract(self, contract_id: Contract) -> Record:
        """Look a contract up: its area, its modem and its status."""
        return {"contract_id": contract_id, **self._read("contracts", contract_id)}

    def check_outage(self, area: Area) -> Record:
        """Look up whether the network is down in an area."""
        return {"area": area, **self._select("areas", area, "outage", "cause", "until")}

    def measure_line(self, modem_id: Modem) -> Record:
        """Measure the line of a modem from the network's side: its latency, and a verdict."""
        modem = self._read("modems", modem_id)
        if modem["line"] == "offline":
            # Until the next measurement, somebody looks at the plug.
            modem["line"] = modem.get("then", "offline")
            return {"modem_id": modem_id, "modem": "offline", "verdict": "cannot be measured"}
        fastest, slowest = (8, 20) if modem["line"] == "good" else (180, 320)
        latency = self._chance.randint(fastest, slowest)
        return {"modem_id": modem_id, "modem": "online", "latency_ms": latency, "verdict": modem["line"]}

    def restart_modem(self, modem_id: Modem) -> str:
        """Restart a modem from afar; the connection is down for two minutes."""
        modem = self._read("modems", modem_id)
        if modem["line"] == "offline":
            raise ConnectionError("the modem is offline and cannot be reached")
        modem["line"] = modem.get("then", modem["line"])
        return "The modem was restarted and is online again."

    def list_visits(self, area: Area) -> Record:
        """List the times at which a technician can come; there may be none."""
        record = self._read("areas", area)
        record["visits"] = self._chance.sample(record["visits"], min(3, len(record["visits"])))
        return {"free": list(record["visits"])}

    def book_visit(self, contract_id: Contract, time: Time) -> str:
        """Book a technician's visit at one of the listed times."""
        times = self._read("areas", self._read("contracts", contract_id)["area"])["visits"]
        if time not in times:
            raise ValueError(f"{time} is not free; free are {', '.join(times) or 'no times'}")
        times.remove(time)
        return f"A technician will come on {time}."

    def notify_when_fixed(self, contract_id: Contract) -> str:
        """Send the customer a message as soon as an outage is over."""
        self._read("contracts", contract_id)
        return "The customer will get a message."


class GiftCardDesk(_Desk):
    """A bookshop's desk for gift cards."""

    def check_card(self, card_number: Card) -> Record:
        """Look a gift card up: its status, until when it is valid, and where it was used."""
        return self._select("cards", card_number, "status", "valid_until", "used")

    def verify_pin(self, card_number: Card, pin: Pin) -> Record:
        """Check the PIN of a card; if it is right, the balance is told, too."""
        card = self._read("cards", card_number)
        if card.get("wrong_pins", 0) > 2:
            raise PermissionError("the card is locked after three wrong PINs; only a colleague can unlock it")
        if pin == card["pin"]:
            card["verified"] = True
            return {"verified": True, "balance": card["balance"]}
        card["wrong_pins"] = card.get("wrong_pins", 0) + 1
        return {"verified": False, "attempts_left": 3 - card["wrong_pins"]}

    def pay_order(self, card_number: Card, order_id: Bill) -> Record:
        """Pay an order with a card, as far as its balance goes."""
        card, order = self._get_usable_card(card_number), self._read("orders", order_id)
        if order["paid"]:
            raise ValueError(f"the order {order_id} is paid already")
        paid = min(card["balance"], order["total"])
        card["balance"] -= paid
        order["total"] -= paid
        order["paid"] = not order["total"]
        return {"paid": paid, "still_to_pay": order["total"], "left_on_card": card["balance"]}

    def activate_card(self, card_number: Card, receipt: Receipt) -> str:
        """Activate a card that the till has not activated."""
        card = self._read("cards", card_number)
        if card["status"] != "inactive":
            raise ValueError(f"the card is {card['status']}")
        if receipt != card["receipt"]:
            raise PermissionError("the receipt does not belong to this card")
        card["status"] = "active"
        return f"The card is active, with {card['balance']:.2f} on it."

    def extend_card(self, card_number: Card) -> str:
        """Extend an expired card by a year; only within six months."""
        card = self._read("cards", card_number)
        if not card.get("may_be_extended"):
            raise PermissionError("a card is extended only within six months after it has expired")
        card |= {"status": "active", "valid_until": "2027-09-30", "may_be_extended": False}
        return "The card is valid until 2027-09-30."

    def replace_card(self, card_number: Card) -> Record:
        """Block a lost card, and send a new one with its balance to the buyer."""
        card = self._get_usable_card(card_number)
        card["status"] = "blocked"
        return {"blocked": card_number, "balance": card["balance"], "new_card": "in three working days"}

    def _get_usable_card(self, card_number: str) -> Record:
        card: Record = self._read("cards", card_number)
        if card["status"] != "active":
            raise ValueError(f"the card is {card['status']}")
        if not card.get("verified"):
            raise PermissionError("the PIN of the card was not verified")
        return card


class DownloadDesk(_Desk):
    """A shop for books, music and programs that are downloaded."""

    def get_purchase(self, order_id: Purchase) -> Record:
        """Look a purchase up: its title and what kind of thing it is."""
        return {"order_id": order_id, **self._select("purchases", order_id, "title", "kind")}

    def get_download_status(self, order_id: Purchase) -> Record:
        """Look up whether a purchase can be downloaded, how often it was, and whether its file is intact."""
        return self._select("purchases", order_id, "status", "downloads_used", "file", "expected")

    def send_new_link(self, order_id: Purchase) -> Record:
        """Make a new link to an intact file, where the link has expired or the file is damaged."""
        purchase = self._read("purchases", order_id)
        if purchase["file"] != "damaged" and purchase["status"] != "link expired":
            status = f"the file is {purchase['file']}, the status {purchase['status']!r}"
            raise ValueError(f"no new link is needed: {status}")
        purchase |= {"file": "intact", "status": "ready"}
        return {"link": f"https://quillbase.example/get/{order_id[-4:]}", "valid_for": "7 days"}

    def allow_downloads(self, order_id: Purchase, extra: Quantity) -> str:
        """Allow further downloads of a purchase whose limit is reached."""
        purchase = self._read("purchases", order_id)
        if purchase["status"] != "limit reached" or not 1 <= extra <= 2:
            raise PermissionError("once the limit is reached, 1 or 2 downloads more can be allowed")
        purchase["status"] = "ready"
        return f"{extra} further downloads are allowed."

    def get_license_key(self, order_id: Purchase) -> Record:
        """Look up the licence key of a program."""
        purchase = self._read("purchases", order_id)
        if "key" not in purchase:
            raise LookupError(f"{purchase['title']} is no program and has no licence key")
        return {"license_key": purchase["key"]}

    def refund_purchase(self, order_id: Purchase) -> str:
        """Pay a purchase back that was never downloaded."""
        purchase = self._read("purchases", order_id)
        if purchase["downloads_used"]:
            raise PermissionError(f"downloaded {purchase['downloads_used']} times: it cannot be refunded")
        if purchase["status"] == "refunded":
            raise ValueError(f"{purchase['title']} was refunded already")
        purchase["status"] = "refunded"
        return f"{purchase['title']} will be refunded within three working days."


class DeliveryDesk(_Desk):
    """A carrier of parcels."""

    def track_parcel(self, tracking_number: Parcel) -> Record:
        """Look up where a parcel is, and when it is expected."""
        keys = ("sender", "status", "expected", "note", "duty", "needs", "days", "goes_to")
        return self._select("parcels", tracking_number, *keys)

    def list_times(self, tracking_number: Parcel) -> Record:
        """List the times at which a parcel can be brought again; there may be none."""
        times = self._chance.sample(self._records["slots"], 3)
        return {"free": list(self._read("parcels", tracking_number).setdefault("slots", times))}

    def reschedule(self, tracking_number: Parcel, time: Time) -> str:
        """Have a parcel brought again at one of the listed times."""
        parcel = self._read("parcels", tracking_number)
        if time not in parcel.get("slots", ()):
            raise ValueError(f"{time} isn't one of the listed times")
        parcel["slots"].remove(time)
        parcel["expected"] = time
        return f"The parcel will be brought on {time}."

    def change_address(self, tracking_number: Parcel, address: Address) -> str:
        """Send a parcel to another address, as long as it is at the sorting centre."""
        self._redirect(tracking_number, address)
        return f"The parcel now goes to {address}."

    def send_to_shop(self, tracking_number: Parcel, area: Area) -> str:
        """Send a parcel to the parcel shop of an area."""
        shop = self._read("shops", area)
        self._redirect(tracking_number, shop)
        return f"The parcel will be at {shop} from tomorrow noon, for 7 days."

    def get_proof(self, tracking_number: Parcel) -> Record:
        """Look up who signed for a delivered parcel, and where it was left."""
        parcel = self._read("parcels", tracking_number)
        if "proof" not in parcel:
            raise LookupError("it was not delivered, so there is no proof of delivery")
        return dict(parcel["proof"])

    def _redirect(self, tracking_number: str, place: str) -> None:
        parcel = self._read("parcels", tracking_number)
        if parcel.get("fixed_address"):
            raise PermissionError("the sender does not allow that it is sent elsewhere")
        if parcel["status"] not in ("at the sorting centre", "delivery attempted"):
            raise PermissionError(f"it cannot be sent elsewhere any more: it is {parcel['status']}")
        if parcel.get("goes_to") == place:
            raise ValueError(f"it goes to {place} already")
        parcel["goes_to"] = place


# What the agents' files name: desks for the process. A suite gives each conversation a desk of its own.
orders, internet, gift_cards = OrderDesk(), InternetDesk(), GiftCardDesk()
downloads, deliveries = DownloadDesk(), DeliveryDesk()
