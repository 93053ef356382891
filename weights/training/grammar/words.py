"""The words of the grammar. Everything a head is tested on is one token, so the lists are short and the words common.

An entity belongs to one pronoun and has two verbs of its own: after the pronoun only one entity of a text fits, and
the verb that comes next proves which one the model had in mind.
"""

# fmt: off
THINGS = {  # it
    "cat": ("purred", "meowed"), "dog": ("barked", "dug"), "bird": ("sang", "flew"), "horse": ("neighed", "galloped"),
    "cow": ("mooed", "grazed"), "frog": ("croaked", "leaped"), "mouse": ("squeaked", "hid"), "bear": ("growled", "ate"),
    "pig": ("grunted", "rolled"), "rabbit": ("hopped", "sniffed"), "ball": ("bounced", "spun"),
    "kite": ("rose", "fell"),
    "bell": ("rang", "shook"), "clock": ("ticked", "stopped"), "boat": ("sailed", "sank"), "lamp": ("glowed", "shone"),
}
GIRLS = {  # she
    "girl": ("smiled", "skipped"), "mother": ("cooked", "hugged"), "queen": ("ruled", "waved"),
    "princess": ("danced", "twirled"), "aunt": ("baked", "knitted"), "witch": ("cackled", "stirred"),
    "nurse": ("helped", "healed"), "sister": ("giggled", "played"), "lady": ("bowed", "curled"),
}
BOYS = {  # he
    "boy": ("ran", "jumped"), "father": ("worked", "fixed"), "king": ("ordered", "frowned"),
    "prince": ("rode", "fought"), "uncle": ("joked", "fished"), "wizard": ("chanted", "vanished"),
    "farmer": ("planted", "plowed"), "brother": ("climbed", "kicked"), "man": ("nodded", "walked"),
}
GROUPS = {  # they
    "ducks": ("quacked", "swam"), "bees": ("buzzed", "stung"), "wolves": ("howled", "hunted"),
    "twins": ("laughed", "argued"), "ants": ("marched", "carried"), "sheep": ("bleated", "slept"),
    "monkeys": ("swung", "chattered"), "friends": ("talked", "shared"), "soldiers": ("stood", "guarded"),
}
KINDS = {"it": THINGS, "she": GIRLS, "he": BOYS, "they": GROUPS}
ANIMALS = ["cat", "dog", "bird", "horse", "cow", "frog", "mouse", "bear", "pig", "rabbit"]
SEATS = ["mat", "rug", "bed", "chair", "box", "bench", "floor", "table", "hill", "log", "step", "sofa"]
FEELINGS = ["tired", "hungry", "happy", "sad", "scared", "sleepy", "cold", "lonely"]
LOOKS = ["old", "small", "happy", "red", "big", "little", "tired", "brave"]
PLACES = ["park", "garden", "forest", "river", "school", "market", "farm", "beach", "store", "lake", "house", "town"]
NAMES = [
    "Mary", "John", "Lily", "Tom", "Anna", "Ben", "Mia", "Max", "Sara", "Sam", "Lucy", "Jack", "Kate", "Tim", "Emma",
    "Leo", "Nora", "Bob",
]
GIFTS = ["drink", "book", "cake", "hat", "ring", "map", "flower", "coin", "toy", "cookie"]
COLOURS = ["red", "blue", "green", "black", "white", "pink"]
ITEMS = [
    "apple", "bread", "coin", "stone", "stick", "shell", "leaf", "key", "spoon", "ring", "map", "rope", "egg", "cup",
]
TABLES = [
    "users", "orders", "books", "cars", "teams", "songs", "movies", "cities", "pets", "shops", "rooms", "events",
    "farms", "films", "ships", "towns", "plants", "games", "clubs", "trains",
]
COLUMNS = [
    "id", "name", "city", "price", "total", "age", "email", "title", "year", "color", "size", "weight", "score", "rank",
    "status", "type", "date", "phone", "country", "salary", "height", "width", "rating", "length", "speed", "level",
    "brand", "owner", "code", "grade", "genre", "state", "count", "team", "author", "artist",
]
# fmt: on

PREDICATES = {noun: verbs for kind in KINDS.values() for noun, verbs in kind.items()}
PRONOUN = {noun: pronoun for pronoun, kind in KINDS.items() for noun in kind}
BARE = [*ANIMALS, *SEATS, *NAMES, *ITEMS, *COLOURS]  # these are one token at the start of a text as well
