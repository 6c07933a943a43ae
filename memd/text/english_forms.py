"""Inflected forms of English words: their base forms, as a dictionary lists them, and irregular forms, which have no stem in common."""

import re
from functools import cache, lru_cache

# A verb with its irregular past forms, a noun with its irregular plural, an adjective with its comparison, or an American
# spelling with the British one.
_IRREGULAR = """
arise arose arisen|be was were been|bear bore borne|beat beaten|become became|begin began begun|bend bent|bind bound|bite bit bitten
bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|do did done|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grind ground
grow grew grown|hang hung|have had|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led
lean leant|learn learnt|leave left|lend lent|lie lay lain|lose lost|make made|mean meant|meet met|mistake mistook mistaken
overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk
sit sat|sleep slept|slide slid|smell smelt|speak spoke spoken|speed sped|spend spent|spill spilt|spin spun|spoil spoilt|stand stood
steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|undertake undertook
wake woke woken|wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written
child children|foot feet|goose geese|half halves|knife knives|leaf leaves|life lives|man men|mouse mice|person people|shelf shelves
thief thieves|tooth teeth|wife wives|wolf wolves|woman women
bad worse worst|big bigger biggest|bright brighter brightest|busy busier busiest|cheap cheaper cheapest|clean cleaner cleanest
close closer closest|cold colder coldest|cool cooler coolest|dark darker darkest|dear dearer dearest|deep deeper deepest
dry drier driest|early earlier earliest|easy easier easiest|fast faster fastest|few fewer fewest|fresh fresher freshest
good better best|happy happier happiest|hard harder hardest|heavy heavier heaviest|high higher highest|hot hotter hottest
large larger largest|late later latest|light lit lighter lightest|long longer longest|loud louder loudest|low lower lowest
near nearer nearest|new newer newest|nice nicer nicest|old older oldest|poor poorer poorest|quick quicker quickest
quiet quieter quietest|rich richer richest|safe safer safest|sharp sharper sharpest|short shorter shortest|simple simpler simplest
slow slower slowest|small smaller smallest|soft softer softest|strong stronger strongest|sweet sweeter sweetest|tall taller tallest
thick thicker thickest|thin thinner thinnest|warm warmer warmest|weak weaker weakest|wet wetter wettest|wide wider widest
young younger youngest
aluminum aluminium|analyze analyse|apologize apologise|armor armour|authorize authorise|behavior behaviour|cancel cancelled cancelling
catalog catalogue|categorize categorise|center centre|check cheque|color colour|cozy cosy|customize customise
defense defence|dialog dialogue|diarrhea diarrhoea|digitize digitise|donut doughnut|emphasize emphasise|favor favour
favorite favourite|fiber fibre|finalize finalise|flavor flavour|fulfill fulfil|gray grey|harbor harbour|honor honour|humor humour
jewelry jewellery|kilometer kilometre|label labelled labelling|labor labour|license licence|liter litre|maneuver manoeuvre
memorize memorise|meter metre|minimize minimise|model modelled modelling|mold mould|mustache moustache|neighbor neighbour
neighborhood neighbourhood|odor odour|offense offence|optimize optimise|organize organise|organization organisation|pajamas pyjamas
parlor parlour|plow plough|practice practise|prioritize prioritise|program programme|realize realise|recognize recognise
reorganize reorganise|rumor rumour|savory savoury|skeptical sceptical|specialize specialise|specialty speciality
standardize standardise|sterilize sterilise|summarize summarise|sympathize sympathise|theater theatre|tire tyre|travel travelled travelling
traveler traveller|tumor tumour|vapor vapour|visualize visualise|watercolor watercolour|woolen woollen|yogurt yoghurt
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


@lru_cache(maxsize=2048)  # a question asks for a word once for each expression that it begins or ends
def base_forms(word: str) -> tuple[str, ...]:
    """Return the words of which this may be a form, in lower case, itself first: "fixes" may be of "fix" and of "fixe"."""
    found = [word]
    if word in (irregular := _irregular()[0]):
        found.append(irregular[word])
    if len(word) < 4:
        return tuple(found)
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
    return (*found, *(irregular[one] for one in found[1:] if one in irregular))
