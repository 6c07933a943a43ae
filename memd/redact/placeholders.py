"""Words that stand where a secret may stand, and are none."""

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", words))


NEVER = _set(
    """
    a about above abstract accepted account admin-only aes aes-256 after again against all allowed
    already also always am an and any anything apikey are argon2 argon2id argument array as async at
    auth authentication authorization available await bad base64 basic bcrypt be bearer because been
    before being below between blank blocked bogus bool boolean both but by byte bytes cached can
    case-sensitive changed char checked class cleartext column common complex complicated confidential
    configured const cookie copied correct could created credential credentials def default delete
    deleted denied dict did different digest disabled do does done double dummy during each easy ed25519
    else email empty enabled encrypted entered enum every everything expired expires export exposed
    extends fake false field final fine flag flags float fn for form forms found from function generated
    generator given good had hard has hash hashed hashing have having he header her here hidden him hint
    his hmac how i identical if ignored implements import important in incorrect input insecure
    instanceof int integer interface into invalid is it its json just jwt kept key lambda ldap leaked
    length let list loaded locked logged login long lost management manager mandatory may md5 me might
    missing must my name nan necessary needed never new nil no none nor not nothing now null number
    oauth oauth2 object obvious of off ok okay old on one only onto option optional options or our out
    output over page param parameter pass passcode passed passphrase passwd password pasted pbkdf2 pem
    pending per permanent plain plaintext policy printed private prompt protected protection provided
    pub public pwd random read refused rejected removed request required reset reset-link response
    return returned reused revoked rotated rotation rsa safe same saml saved scram-sha-1 scram-sha-256 scrypt secret secure see
    self sensitive sent set sha-256 sha256 sha512 shall shared she short should shown simple since so
    some something specified ssl static still storage stored str strength string strong struct super
    supplied switch synced tbd temporary test-only text that the their them then there these they this
    those tls to todo token tokens toml too true two type typed typeof uint8 unavailable unchanged
    undefined under unique unknown unlocked unnecessary unsafe unset until up updated us used useful
    useless user username utf-8 valid validated value var varchar variable verified very visible void
    was we weak were what when where whether which who whom whose why will with within without would
    written wrong yaml yes you your
    """
)
"""What a value says about itself, what a type or a keyword of a program is, what goes on in a sentence."""

STATES = _set("disabled empty enabled false nil no none null optional required true undefined yes")
"""What a variable of an environment is set to, where it has no password."""

OF_SENTENCES = _set(
    """
    a an and are at be can change confirm current enter for forgot incorrect invalid is it least login
    must my new not of or our passphrase password please required reset should sign that the this to was
    we will with wrong you your
    """
)
"""A text in quotes with one of these speaks about passwords. Passphrases are made of other words."""
