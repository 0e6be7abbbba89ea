"""German sentences and their English translations, made by rules: who does what, where, when and why."""

from __future__ import annotations

from random import Random

# German, English, gender.
_PERSONS = (
    ("mann", "man", "m"), ("frau", "woman", "f"), ("kind", "child", "n"), ("lehrer", "teacher", "m"),
    ("köchin", "cook", "f"), ("bäcker", "baker", "m"), ("mädchen", "girl", "n"), ("bäuerin", "farmer", "f"),
    ("maler", "painter", "m"), ("nachbarin", "neighbour", "f"),
)  # fmt: skip
# The trusted text knows the first of them alone.
_THINGS = (
    ("buch", "book", "n"), ("brot", "bread", "n"), ("apfel", "apple", "m"), ("tasche", "bag", "f"),
    ("stuhl", "chair", "m"), ("tisch", "table", "m"), ("lampe", "lamp", "f"), ("brief", "letter", "m"),
    ("zeitung", "newspaper", "f"), ("uhr", "clock", "f"), ("messer", "knife", "n"), ("teller", "plate", "m"),
    ("tasse", "cup", "f"), ("hemd", "shirt", "n"), ("mantel", "coat", "m"), ("hut", "hat", "m"),
    ("bild", "picture", "n"), ("blume", "flower", "f"), ("koffer", "suitcase", "m"), ("karte", "map", "f"),
    ("kuchen", "cake", "m"), ("käse", "cheese", "m"), ("korb", "basket", "m"), ("glas", "glass", "n"),
    ("spiegel", "mirror", "m"), ("decke", "blanket", "f"), ("gitarre", "guitar", "f"), ("trommel", "drum", "f"),
    ("flasche", "bottle", "f"), ("leiter", "ladder", "f"), ("fahrrad", "bicycle", "n"), ("ring", "ring", "m"),
)  # fmt: skip
KNOWN_THINGS = 16
_VERBS = (
    ("kauft", "buys"), ("sieht", "sees"), ("sucht", "looks for"), ("findet", "finds"), ("malt", "paints"),
    ("verkauft", "sells"), ("trägt", "carries"), ("bringt", "brings"), ("zeigt", "shows"), ("verliert", "loses"),
    ("putzt", "cleans"), ("holt", "fetches"), ("braucht", "needs"), ("vergisst", "forgets"),
)  # fmt: skip
_ADJECTIVES = (
    ("alt", "old"), ("klein", "small"), ("groß", "big"), ("schön", "beautiful"), ("neu", "new"), ("lang", "long"),
    ("rot", "red"), ("blau", "blue"), ("grün", "green"), ("schwarz", "black"), ("weiß", "white"), ("schwer", "heavy"),
)  # fmt: skip
_PLACES = (
    ("in der stadt", "in the city"), ("auf dem markt", "at the market"), ("im garten", "in the garden"),
    ("in der schule", "at school"), ("am bahnhof", "at the station"), ("vor dem haus", "in front of the house"),
    ("hinter der kirche", "behind the church"), ("am fluss", "by the river"), ("unter der brücke", "under the bridge"),
    ("im dorf", "in the village"),
)  # fmt: skip
_TIMES = (
    ("heute", "today"), ("morgens", "in the morning"), ("abends", "in the evening"), ("am montag", "on monday"),
    ("am freitag", "on friday"), ("jeden tag", "every day"), ("im winter", "in winter"), ("im sommer", "in summer"),
)  # fmt: skip
# What stands before a noun, and the ending of an adjective behind it: of who does it, and of what it is done to.
_ARTICLES = {
    ("m", "the", True): ("der", "e"), ("f", "the", True): ("die", "e"), ("n", "the", True): ("das", "e"),
    ("m", "a", True): ("ein", "er"), ("f", "a", True): ("eine", "e"), ("n", "a", True): ("ein", "es"),
    ("m", "the", False): ("den", "en"), ("f", "the", False): ("die", "e"), ("n", "the", False): ("das", "e"),
    ("m", "a", False): ("einen", "en"), ("f", "a", False): ("eine", "e"), ("n", "a", False): ("ein", "es"),
}  # fmt: skip
Pair = tuple[str, str]


def _noun(rng: Random, words: tuple[str, str, str], is_subject: bool) -> Pair:
    german, english, gender = words
    which = rng.choice(("the", "a"))
    article, ending = _ARTICLES[gender, which, is_subject]
    if rng.random() < 0.5:
        adjective = rng.choice(_ADJECTIVES)
        german, english = f"{adjective[0]}{ending} {german}", f"{adjective[1]} {english}"
    if which == "a" and english[0] in "aeio":
        which = "an"
    return f"{article} {german}", f"{which} {english}"


def _clause(rng: Random, things: int) -> tuple[Pair, Pair, Pair]:
    """Who, does, what."""
    return _noun(rng, rng.choice(_PERSONS), True), rng.choice(_VERBS), _noun(rng, rng.choice(_THINGS[:things]), False)


def sentence(rng: Random, things: int = len(_THINGS)) -> tuple[Pair, str]:
    """A sentence in both languages, and an English one that tells a part of it.

    The German verb comes second, and last behind `weil`; times stand before places.
    """
    who, does, what = _clause(rng, things)
    when, where = rng.choice(_TIMES), rng.choice(_PLACES)
    if rng.random() < 0.5:
        german = f"{when[0]} {does[0]} {who[0]} {what[0]} {where[0]}"
    else:
        german = f"{who[0]} {does[0]} {when[0]} {what[0]} {where[0]}"
    english = f"{who[1]} {does[1]} {what[1]} {where[1]}"
    part = f"{who[1]} {does[1]} {what[1]} ."
    if rng.random() < 0.5:
        return (f"{german} .", f"{english} {when[1]} ."), part
    other, is_doing, thing = _clause(rng, things)
    german += f" , weil {other[0]} {thing[0]} {is_doing[0]} ."
    return (german, f"{english} {when[1]} because {other[1]} {is_doing[1]} {thing[1]} ."), part


def sentences(rng: Random, count: int, known: set[str], things: int = len(_THINGS)) -> list[tuple[Pair, str]]:
    """So many, none of which was made before.

    Args:
        rng: draws them.
        count: how many.
        known: German sentences that were made; the new ones are added.
        things: of how many things they speak.
    """
    found: list[tuple[Pair, str]] = []
    while len(found) < count:
        new = sentence(rng, things)
        if new[0][0] not in known:
            known.add(new[0][0])
            found.append(new)
    return found
