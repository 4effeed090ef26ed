"""Conversations that reach the milestones that the gold conversations leave out, by use case."""

PERFECT_CONVERSATIONS: dict[str, list[str]] = {
    "order_discrepancy": [
        # The money rather than a mug.
        """
customer: One of my mugs is missing, order KC-2041.
call: get_order {"order_id": "KC-2041"}
call: get_packing_record {"order_id": "KC-2041"}
call: check_stock {"sku": "SKU-114"}
agent: It was not packed, I am sorry. Shall I send you another one?
customer: No, I would rather have my money back.
call: refund {"order_id": "KC-2041", "amount": 12.0}
agent: The 12.00 will be refunded within three working days.
""",
        # Glasses of which the tool says that only a supervisor may replace them.
        """
customer: Two glasses of order KC-2046 are missing.
call: get_order {"order_id": "KC-2046"}
call: get_packing_record {"order_id": "KC-2046"}
call: send_replacement {"order_id": "KC-2046", "sku": "SKU-175", "quantity": 2}
call: hand_over
agent: A colleague takes over, since a supervisor has to decide.
""",
        # A customer who cannot be found.
        """
customer: Something is missing. I am Eve Nobody and have no number.
call: find_by_name {"name": "Eve Nobody", "detail": "mug"}
call: hand_over
agent: I do not find your order. A colleague takes over.
""",
        # A customer who wants a person.
        """
customer: I want to talk to a human.
call: hand_over
agent: A colleague takes over.
""",
    ],
    "internet_trouble": [
        # An outage, and no message.
        """
customer: The internet of FN-30519 is down.
call: find_contract {"contract_id": "FN-30519"}
call: check_outage {"area": "Harbour"}
agent: There is an outage until 18:30. May I send you a message as soon as it is fixed?
customer: No, thanks.
""",
        # A suspended contract.
        """
customer: FN-30524 is down.
call: find_contract {"contract_id": "FN-30524"}
call: hand_over
agent: Your contract is suspended. A colleague takes over and can tell you more.
""",
        # A number that does not exist.
        """
customer: FN-99999 is down.
call: find_contract {"contract_id": "FN-99999"}
call: hand_over
agent: I do not find your contract. A colleague takes over.
""",
        # An outage, and then a question for a person.
        """
customer: The internet of FN-30519 is down.
call: find_contract {"contract_id": "FN-30519"}
call: check_outage {"area": "Harbour"}
agent: There is an outage until 18:30. May I send you a message as soon as it is fixed?
customer: Yes. And can a human tell me whether I get money back?
call: notify_when_fixed {"contract_id": "FN-30519"}
call: hand_over
agent: You will get a message. A colleague takes over and can tell you about the money.
""",
    ],
    "gift_card": [
        # The balance.
        """
customer: How much is on GFT-551208? The PIN is 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
agent: There are 50.00 on it.
""",
        # An order that is paid already.
        """
customer: Pay LB-3303 with GFT-551213, PIN 8820.
call: check_card {"card_number": "GFT-551213"}
call: verify_pin {"card_number": "GFT-551213", "pin": "8820"}
call: pay_order {"card_number": "GFT-551213", "order_id": "LB-3303"}
agent: That order is paid already, nothing was taken from your card.
""",
        # A card that expired long ago.
        """
customer: GFT-551212 has expired.
call: check_card {"card_number": "GFT-551212"}
call: extend_card {"card_number": "GFT-551212"}
agent: I am sorry. A card is extended only within six months.
""",
        # A use that the owner remembers.
        """
customer: GFT-551209 is empty.
call: check_card {"card_number": "GFT-551209"}
agent: It was used at Station Street on 2 November. Was that you?
customer: Oh, that was my daughter.
""",
        # A card without its PIN.
        """
customer: What is the balance of GFT-551208?
call: check_card {"card_number": "GFT-551208"}
agent: What is its PIN?
customer: I do not know the PIN.
call: hand_over
agent: Then a colleague takes over.
""",
        # A number that does not exist, and a customer who then wants a person.
        """
customer: Is GFT-999999 valid?
call: check_card {"card_number": "GFT-999999"}
agent: I do not find this card.
customer: Then give me a human.
call: hand_over
agent: A colleague takes over.
""",
    ],
    "digital_download": [
        # A damaged file.
        """
customer: QB-7025 stops at page 12.
call: get_download_status {"order_id": "QB-7025"}
call: send_new_link {"order_id": "QB-7025"}
agent: The file was damaged, I am sorry. Here is an intact one: https://quillbase.example/get/7025
""",
        # A file that is intact.
        """
customer: QB-7029 does not open.
call: get_download_status {"order_id": "QB-7029"}
agent: The file is intact. With which app do you open it?
""",
        # A refund that is due.
        """
customer: I want a refund for QB-7026.
call: get_download_status {"order_id": "QB-7026"}
call: refund_purchase {"order_id": "QB-7026"}
agent: Winter Kitchen will be refunded.
""",
        # A key, and a person.
        """
customer: I need the key of QB-7023, and then a human for a larger licence.
call: get_purchase {"order_id": "QB-7023"}
call: get_purchase {"order_id": "QB-7023"}
call: get_license_key {"order_id": "QB-7023"}
call: hand_over
agent: The key is TR4N-88QX-2LPD. A colleague takes over.
""",
        # A number that does not exist, and a customer who then wants a person.
        """
customer: QB-9999 does not begin.
call: get_download_status {"order_id": "QB-9999"}
agent: I do not find it.
customer: Is there a colleague who does?
call: hand_over
agent: A colleague takes over.
""",
    ],
    "delivery": [
        # Where is it?
        """
customer: When does HP-640116 come?
call: track_parcel {"tracking_number": "HP-640116"}
agent: It is expected on Thursday.
""",
        # Customs.
        """
customer: Where is HP-640117?
call: track_parcel {"tracking_number": "HP-640117"}
agent: Customs hold it. They need the invoice from you, and 18.40 of duty.
""",
        # A neighbour has it.
        """
customer: HP-640114 is said to be delivered, and I do not have it.
call: track_parcel {"tracking_number": "HP-640114"}
call: get_proof {"tracking_number": "HP-640114"}
agent: M. Okafor at number 14 has signed for it.
customer: Ah, then I will ask them.
""",
        # Nobody signed.
        """
customer: HP-640115 is said to be delivered, and I do not have it.
call: track_parcel {"tracking_number": "HP-640115"}
call: get_proof {"tracking_number": "HP-640115"}
call: open_case {"number": "HP-640115"}
agent: Nobody signed for it. I have opened the case CASE-0115.
""",
        # The customer wants it at a shop.
        """
customer: Can I pick it up at a shop? I was out when you came with HP-640113.
call: track_parcel {"tracking_number": "HP-640113"}
call: send_to_shop {"tracking_number": "HP-640113", "area": "Riverside"}
agent: It will be at the Riverside Kiosk from tomorrow noon.
""",
        # A sender who does not allow it.
        """
customer: HP-640120 must go to another address, Elm Street 9 in Ferrytown.
call: track_parcel {"tracking_number": "HP-640120"}
call: change_address {"tracking_number": "HP-640120", "address": "Elm Street 9, Ferrytown"}
agent: I am sorry, its sender does not allow that.
""",
        # A number that does not exist, and a customer who then wants a person.
        """
customer: Where is HP-999999?
call: track_parcel {"tracking_number": "HP-999999"}
agent: I do not find it.
customer: Then let me talk to a human.
call: hand_over
agent: A colleague takes over.
""",
    ],
}
