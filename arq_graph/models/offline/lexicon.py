"""Word lists of everyday customer-service English: what carries no meaning, and what means about the same."""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


STOP_WORDS = listed(
    """
    a an the this that these those here there it its it's itself he him his she her hers they them their theirs
    i i'm i've i'd i'll me my mine myself we us our ours you your yours you're you've you'd he's she's they're
    is are was were be been being am isn aren has have had having do does did doing done will would shall should
    can could may might must ought let's
    of in on at to for from by with about into onto over under than then as and or but if so because while of
    off up down out per via between among during through
    whether what which who whom whose that's what's who's here's there's
    some any all each every both either such other another same own just only also too very really quite rather
    much many more most less least few lot lots bit still already yet ever now again soon
    please kindly well ok okay oh um hmm yes yeah yep sure thing things something anything everything someone
    anyone one ones way kind sort maybe perhaps else able ask asks asked asking
    """
)
"""Words that never count, neither in a condition nor in a message."""

WEAK_WORDS = listed(
    """
    customer user guest patient client caller visitor member patron shopper buyer reader student passenger
    traveler traveller employee colleague subscriber borrower tenant
    want wish need like request inquire enquire inquiry enquiry question wonder query say tell mention talk speak
    state express indicate know find get give make take go come look seek interest try provide specify share
    report describe discuss raise bring refer concern regard relate involve include information info detail details
    conversation
    message agent assistant chat current currently currently actually possible certain specific particular general
    hi hello hey dear there thanks thank two three four five six seven eight nine ten
    use using show see think believe mean seem appear turn happen learn hear understand
    """
)
"""Words that a condition is made of whatever it is about."""

FAINT_WORDS = listed(
    "type kind level status state result results system account member customer value number amount "
    "date name help"
    " service option policy rule food"
)
"""Words that say a little about what a condition is about."""

NEGATORS = listed(
    "not no never none nothing neither nor without cannot can't cant don't dont doesn't doesnt didn't "
    "didnt isn't"
    " isnt aren't wasn't weren't won't wont wouldn't couldn't shouldn't haven't havent hasn't hasnt "
    "hadn't ain't"
    " unable"
)

PHRASES = {
    r"how much|how expensive|what does (?:it|this|that) cost": "price",
    r"how long": "duration",
    r"what time|opening (?:hours|times)|business hours|office hours": "hours",
    r"(?:do|did|would) you (?:still )?(?:have|stock|carry|sell|offer)(?: any)?|have you got(?: any)?"
    r"|(?:is|are) there (?:any|an?)"
    r"|(?:whether|if) (?:the|you|we|a) ?\w* (?:has|have|stocks|sells|offers)": "onoffer",
    r"(?:is|are|was|were) not (?:in|on) (?:the|our|any|this) (?:\w+ )?(?:catalog(?:ue)?|list|system"
    r"|database|inventory|records?|register|directory)"
    r"|(?:isn't|aren't) (?:in|on) (?:the|our) (?:catalog(?:ue)?|list|system|database|inventory"
    r"|records?)": "unfound",
    r"should (?:i|we)|what would you (?:do|recommend)": "advice",
    r"money back": "refund",
    r"(?:send|bring|give) (?:it |them |this |that )?back": "return",
    r"call(?:ed|ing)? off": "cancel",
    r"get rid of": "cancel",
    r"check[- ]?(?:ing )?out(?! of)|checking out": "checkout",
    r"check(?:ed|ing)?[- ]in\b": "checkin",
    r"wi[- ]fi": "wifi",
    r"e-mail": "email",
    r"(?:log|sign)(?:ged|ging|ned|ning)?[- ](?:in|on)(?:to)?\b": "login",
    r"(?:do|does|did)(?:n't| not|nt) work|(?:not|isn't|isnt|aren't|arent) working|stopped working|is down"
    r"|out of order|won't (?:start|turn on)|(?:went|go|goes|is) dead": "broken",
    r"out[- ]of[- ]stock|sold[- ]out|fully booked|no longer available|not available|on loan": "unavailable",
    r"in stock": "available",
    r"real (?:person|human)|human being|live agent|some(?:one|body) (?:real|human)": "human",
    r"good (?:morning|afternoon|evening|day)": "hello",
    r"late fee": "late fee",
    r"air[- ]?con(?:ditioning)?|\bac\b|a/c": "air conditioning",
    r"as soon as possible|right away|straight away": "urgent",
    r"does not exist|doesn't exist|could not be found|cannot be found|can't be found|no such": "unfound",
    r"not found|no (?:results?|matches|match|hits?)(?: found)?": "unfound",
    r"get in touch|reach out": "contact",
    r"speak (?:to|with)|talk (?:to|with)": "speak",
    r"how (?:do|can) i get to": "where",
    r"gluten[- ]free": "glutenfree",
}
"""Phrases, and the word that stands for them."""

SYNONYMS = (
    "buy purchase",
    "money dollar euro pound cash",
    "cancel abort annul cancellation quit terminate",
    "refund reimburse reimbursement",
    "broken break damage damaged defect defective faulty fault malfunction crack cracked",
    "late delay delayed overdue behind belated",
    "price cost fee charge rate pricing expensive",
    "hour hours schedule",
    "location address located whereabouts",
    "human representative operator staff",
    "angry frustrated upset annoyed furious mad irritated",
    "complain complaint unhappy dissatisfied dissatisfaction disappointed",
    "thank thanks gratitude grateful",
    "goodbye bye farewell",
    "hello hi hey greet greeting",
    "help assist assistance support",
    "problem issue trouble difficulty error",
    "book reserve reservation booking",
    "phone telephone",
    "child children kid kids baby",
    "doctor physician",
    "ill sick unwell",
    "fix repair",
    "urgent emergency immediately asap urgently",
    "track trace",
    "package parcel",
    "item product article",
    "picture photo image",
    "big large",
    "small little",
    "cheap inexpensive affordable",
    "discount promotion promo coupon voucher deal",
    "change modify alter amend update",
    "reschedule postpone",
    "invoice bill receipt",
    "recommend suggest recommendation suggestion advice advise",
    "wifi internet network wireless",
    "computer laptop pc notebook",
    "car vehicle",
    "pain ache hurt painful sore",
    "noise noisy loud",
    "start begin",
    "finish complete completed",
    "arrive arrival receive",
    "lost missing lose",
    "decline reject deny refuse",
    "fail failure unsuccessful",
    "available availability vacant onoffer",
    "password passcode",
    "renew extend renewal extension",
    "meal food",
    "dinner supper",
    "shipping shipment dispatch ship",
    "movie film",
    "trip journey travel",
    "vegetarian veggie",
    "allergy allergic allergen",
    "pet dog cat animal",
    "park parking",
    "dirty unclean",
    "slow sluggish",
    "insurance insured insure",
    "job vacancy career",
    "pickup collect collection",
)
"""Words that count as the same word."""

RELATED = (
    "where location",
    "where status",
    "where track",
    "where arrive",
    "where find",
    "status track",
    "status arrive",
    "status late",
    "where late",
    "when hour",
    "when time",
    "when open",
    "when schedule",
    "open hour",
    "close hour",
    "problem broken",
    "problem fail",
    "problem slow",
    "problem wrong",
    "angry complain",
    "complain problem",
    "refund return",
    "change reschedule",
    "change move",
    "change switch",
    "change edit",
    "reset forget",
    "delivery arrive",
    "delivery ship",
    "cheap discount",
    "lost stolen",
    "login password",
    "ill pain",
    "hot warm",
    "human manager",
    "human person",
    "contact phone",
    "contact email",
    "free available",
    "loan borrow",
    "appointment visit",
    "fine fee",
    "due late",
    "due when",
    "duration time",
    "pay payment",
    "debt owe",
    "party person",
    "group person",
    "guest person",
    "old year",
    "room suite",
    "room bedroom",
    "sell onoffer",
    "free onoffer",
)
"""Pairs that count as nearly the same word."""

KINDS = {
    "clothes": "suit dress coat jacket shirt blouse skirt trousers jeans sweater pullover scarf gown uniform curtain",
    "garment": "suit dress coat jacket shirt blouse skirt trousers jeans sweater pullover scarf gown uniform clothes",
    "furniture": "sofa couch chair armchair wardrobe shelf desk table bed cupboard drawer stool bench",
    "appliance": "kettle toaster fridge refrigerator freezer oven stove dishwasher washer dryer microwave vacuum",
    "device": "phone laptop tablet printer router camera monitor speaker headset keyboard watch charger",
    "instrument": "piano guitar violin cello flute trumpet saxophone drum clarinet harp viola organ",
    "vehicle": "car van truck bike bicycle scooter motorcycle bus lorry trailer camper",
    "boat": "yacht dinghy kayak canoe sailboat ferry barge",
    "plant": "rose tree shrub orchid fern cactus tulip herb bush flower seedling",
    "flower": "rose tulip lily orchid daisy sunflower bouquet",
    "animal": "horse rabbit hamster parrot cow sheep goat hen pony",
    "pet": "rabbit hamster parrot guinea",
    "drink": "coffee tea juice water beer wine lemonade soda cocktail",
    "meal": "pizza pasta soup salad burger sandwich curry steak menu dish",
    "dish": "pizza pasta soup salad burger sandwich curry steak",
    "course": "class lesson workshop seminar training",
    "room": "studio hall office lounge",
    "tool": "drill saw hammer ladder wrench sander",
    "jewellery": "ring necklace bracelet earring brooch watch",
    "document": "passport certificate licence contract letter form permit visa",
    "treatment": "massage facial manicure haircut therapy",
    "sport": "tennis football swimming yoga climbing golf",
    "medicine": "tablet pill syrup ointment antibiotic vaccine",
    "book": "novel comic dictionary atlas",
    "toy": "doll puzzle teddy kite",
}
"""General words, and special ones that each is said of."""

IRREGULAR = {
    "sent": "send",
    "paid": "pay",
    "bought": "buy",
    "broke": "break",
    "broken": "broken",
    "forgot": "forget",
    "forgotten": "forget",
    "gave": "give",
    "given": "give",
    "said": "say",
    "told": "tell",
    "came": "come",
    "went": "go",
    "gone": "go",
    "left": "leave",
    "felt": "feel",
    "found": "find",
    "taken": "take",
    "took": "take",
    "stole": "stolen",
    "ate": "eat",
    "spoke": "speak",
    "spoken": "speak",
    "children": "child",
    "people": "person",
    "later": "late",
    "lost": "lost",
    "missing": "missing",
    "cheaper": "cheap",
    "cheapest": "cheap",
    "bigger": "big",
    "closed": "close",
    "booking": "book",
    "delivery": "deliver",
    "deliveries": "deliver",
    "payment": "pay",
    "hurting": "hurt",
    "during": "during",
    "morning": "morning",
    "evening": "evening",
    "opening": "open",
    "news": "news",
    "address": "address",
    "process": "process",
    "always": "always",
    "bus": "bus",
    "gas": "gas",
    "thing": "thing",
    "nothing": "nothing",
    "anything": "anything",
    "something": "something",
    "spring": "spring",
    "string": "string",
    "ring": "ring",
    "king": "king",
    "wing": "wing",
    "red": "red",
    "bed": "bed",
    "need": "need",
    "feed": "feed",
    "speed": "speed",
    "use": "use",
    "used": "use",
    "using": "use",
}
"""Stems that the suffix rules would not find."""
