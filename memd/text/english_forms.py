"""Inflected forms of English words: what a dictionary has a word under, and the irregular forms that no stem shares."""

import re
from functools import cache

# A verb with its irregular past forms, or a noun with its irregular plural.
_IRREGULAR = """
arise arose arisen|be was were been|bear bore borne|beat beaten|become became|begin began begun|bend bent|bind bound|bite bit bitten
bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|do did done|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grind ground
grow grew grown|hang hung|have had|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led
lean leant|learn learnt|leave left|lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|mistake mistook mistaken
overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk
sit sat|sleep slept|slide slid|smell smelt|speak spoke spoken|speed sped|spend spent|spill spilt|spin spun|spoil spoilt|stand stood
steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|undertake undertook
wake woke woken|wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written
child children|foot feet|goose geese|half halves|knife knives|leaf leaves|life lives|man men|mouse mice|person people|shelf shelves
thief thieves|tooth teeth|wife wives|wolf wolves|woman women
"""
_DOUBLED = re.compile(r"([^aeiouylsz])\1$")


@cache
def _irregular() -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Return the word of each irregular form, and the irregular forms of each word."""
    rows = [row.split() for row in re.split(r"[|\n]", _IRREGULAR.strip())]
    return {form: word for word, *forms in rows for form in forms}, {
        word: tuple(forms) for word, *forms in rows
    }


def irregular_forms(word: str) -> tuple[str, ...]:
    """Return the forms of a word that have another stem: "bought" for "buy"."""
    return _irregular()[1].get(word, ())


def base_forms(word: str) -> list[str]:
    """Return the words of which this may be a form, in lower case, itself first: "fixes" may be of "fix" and of "fixe"."""
    found = [word]
    if word in (irregular := _irregular()[0]):
        found.append(irregular[word])
    if len(word) < 4:
        return found
    if word.endswith("ies"):
        found += [word[:-3] + "y", word[:-1]]
    elif word.endswith("s") and not word.endswith("ss"):
        found += [word[:-1], word[:-2]] if word.endswith("es") else [word[:-1]]
    for ending in ("ied", "ed", "ing"):
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < 2:
            continue
        if ending == "ied":
            found.append(stem + "y")
        else:
            found += [stem, stem + "e"]
            if ending == "ing" and stem.endswith("y"):
                found.append(stem[:-1] + "ie")
            if _DOUBLED.search(stem):
                found.append(stem[:-1])
        break
    return found
