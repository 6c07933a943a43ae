"""Codes of locks and logins, seeds of authenticators, recovery codes and licences."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        ("The code for the garage keypad is 480213, thanks", "480213"),
        ("Alarm panel: disarm code 4821 then press star", "4821"),
        ("lockbox combo is 12-34-08", "12-34-08"),
        ("The safe opens with 731904.", "731904"),
        ("voicemail PIN: 4410", "4410"),
        ("card ends in 1881, cvv 773", "773"),
        ("the PUK is 83920174", "83920174"),
        ("Your Acme verification code is 492 118.", "492 118"),
        (
            "enter this setup key in your authenticator app: QNMX PVUO Z7HY JAMJ NP6R UEQL",
            "QNMX PVUO Z7HY JAMJ NP6R UEQL",
        ),
        (
            "2FA manual entry, lower case: qnmx pvuo z7hy jamj np6r ueql",
            "qnmx pvuo z7hy jamj np6r ueql",
        ),
        ("oathtool --totp -b QNMXPVUOZ7HYJAMJNP6RUEQL", "QNMXPVUOZ7HYJAMJNP6RUEQL"),
        ("Your Google backup codes\n1. 5060 2456\n2. 6800 2584\n3. 2387 7478", "6800 2584"),
        ("备用恢复码如下，请妥善保存：9uVW8VeF92、UvThQ5M09u、Fk61Nh5tqJ", "UvThQ5M09u"),
        ("Google backup codes (printed 2/25):\n1. 9468 9595\n2. 3737 8329", "3737 8329"),
        ("github-recovery-codes.txt\n6e80c-b0c94\n0b88e-16837", "0b88e-16837"),
        ("alarm off with 9026# within 30 sec", "9026#"),
        ("the safe in the study: 38-07-52, turn left first", "38-07-52"),
        ("lock of the cargo bike: combination 70462", "70462"),
        ("the 6-digit code from my phone is 903 117", "903 117"),
        ("Stardew key: XE9JB-JD40P-FSU80", "XE9JB-JD40P-FSU80"),
        ("slmgr /ipk VHD9D-3YP3F-2MRW7-9PJ2G-JHJBQ", "VHD9D-3YP3F-2MRW7-9PJ2G-JHJBQ"),
        (
            "BitLocker: 664532-383031-366278-699336-592823-081774-425909-672551",
            "664532-383031-366278-699336-592823-081774-425909-672551",
        ),
        ("Code zum Entsperren 193844", "193844"),
        ("Postbank: Ihre TAN lautet 618204 für die Überweisung", "618204"),
        ("Hab den Zahlencode vom Keypad geändert: 571936.", "571936"),
        ("y la clave del portal 3380", "3380"),
        ("序列号 A1B2-C3D4-E5F6-G7H8-J9K0 可以激活", "A1B2-C3D4-E5F6-G7H8-J9K0"),
        ("the duress code is 9981", "9981"),
        ("the front door takes 4471#", "4471#"),
        ("your one time code is 774812", "774812"),
        (
            "BitLocker recovery key: 482913-559021-339182-774520-118273-660194-225381-907164",
            "482913-559021-339182-774520-118273-660194-225381-907164",
        ),
        ("链接: https://pan.example.com/s/1abc 提取码 k8zp", "k8zp"),
        ("disarm the alarm within 30s using 739105", "739105"),
        ("my voicemail pin (it's 93031) is not taken", "93031"),
        ("The combination of the old safe, as he wrote it down: L82 - R23 - L48", "L82 - R23 - L48"),
        ("the code they texted me is 990743, hurry", "990743"),
        ("BACKUP CODES (desk@example.com)\n1. 3244 4324        6. 3417 9050", "3417 9050"),
        ("SAVE YOUR BACKUP CODES — ann@example.com\n1. 1897 9351     6. 1302 8167", "1302 8167"),
        ("github 2fa backup\n148ec-39634\n4d6aa-4ec67", "4d6aa-4ec67"),
        ("Game keys left over:\nHollow (Steam): L1QGP-GG5R0-HY137", "L1QGP-GG5R0-HY137"),
        ("微软账户的恢复代码：J1WEU-TU02H-MWU0P-43JXQ-ZUXSB", "J1WEU-TU02H-MWU0P-43JXQ-ZUXSB"),
        (
            "Vault 的恢复代码：ujas 3mmh 0rn0 xhvt plbd r10m dqgy otyh",
            "ujas 3mmh 0rn0 xhvt plbd r10m dqgy otyh",
        ),
        (
            "Element security key: EsTV WgFM ntFh TpgM bXYi QXtq BxX1 QMTv 4Nk4 eUt8 FdEi Fbff",
            "EsTV WgFM ntFh TpgM bXYi QXtq BxX1 QMTv 4Nk4 eUt8 FdEi Fbff",
        ),
        (
            "Can't scan it? Enter this key instead: uvvh dwae 6o2s bkd2 rxtd ckzj f2va 5nbf",
            "uvvh dwae 6o2s bkd2 rxtd ckzj f2va 5nbf",
        ),
        ("老手机锁屏是135792，先解锁", "135792"),
        ("房间智能锁按 918273 再按#号", "918273"),
        ("验证码收到了，是 781622，快填", "781622"),
        ("要设置新的PIN，设成了 6182 ，记一下", "6182"),
        ("会议的主持人密钥：383412", "383412"),
        ("家長密碼還是 929011", "929011"),
        ("Пин-код от домофона 3352", "3352"),
        ("ゲスト用の暗証番号は5870に変更", "5870"),
        ("de slagboomcode is 82490", "82490"),
        ("koden till hennes BankID är 361604", "361604"),
        ("Codice dispositivo: 904305", "904305"),
        ("Digicode de l'immeuble : 58B21 puis à droite", "58B21"),
        ("الرقم السري للخزنة 802460", "802460"),
    ],
)
def test_codes_go(text: str, secret: str) -> None:
    """Whole, and what says what they are stays."""
    redacted = _REDACTOR.redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:4])


@table(
    "text",
    [
        "the front door number 4821 of the street",
        "error code 4821 means that the door is open",
        "the garage code is 4821 lines long",
        "the safe opens with a key",
        "exit code 1024, entry point 4096",
        "we kept backup codes in 2019 and 2020, then stopped",
        "recovery codes 2021",
        "the authenticator app with that name, from that firm, does what they need",
        "product key 550E8400-E29B-41D4-A716-446655440000",
        "the combination of 3 - 4 words",
        "BitLocker: 664533-383031-366278-699336-592823-081774-425909",
        "the lock in the hall: 2024-10-07",
        "der Code zum Lesen 193844 Zeilen",
        "alarm off with 3 lines",
        "phone number 5551234567",
        "he opens the shop with 4821 books",
        "the code they sent is 4821 lines long",
        "this combination is what the team of 2 - 3 wants",
        "the security key that will have been used from 2024 with some more",
        "验证码错误，错误码是 10021",
        "验证码的有效期是 300 秒",
        "大门是 2015 年换的",
        "门锁的价格是 1299",
        "门锁坏了，是 300 元修好的",
        "ping 是 1000",
        "digicode hors service depuis 2023.",
        "Keys of the map:\nABCDE-FGHIJ-KLMNO",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    """Years, lengths, identifiers, and words of four letters."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "GitHub recovery codes, printed 2026-01-04:\n§\n§\n§",
        "My Google backup codes in case the phone dies: § § §",
        "GitHub 恢复码剩这仨\n§\n§\n§",
        "If I lose the yubikey: Discord backup §, §, §",
        "谷歌的备用验证码先记三个，§、§和§",
    ],
)
@pytest.mark.parametrize("codes", ["f3a91-0cc27 81d0e-b6642 c94f7-3ae15", "a8fk-20xz m3pq-77rt k2v9-84qe"])
def test_codes_of_one_form_go_wherever_their_label_stands(text: str, codes: str) -> None:
    """All of them: what stands between says what they are for."""
    some = iter(codes.split())
    redacted = _REDACTOR.redact("".join(next(some) if sign == "§" else sign for sign in text)).text
    assert not any(code in redacted for code in codes.split())


def test_a_long_series_of_codes_goes_up_to_a_bound() -> None:
    """More than anybody has; what follows stands apart."""
    most = shipped("memd.redact.codes.recovery_codes._MOST_CODES")
    codes = [f"a{number:03}x-b{number:03}y" for number in range(most + 1)]
    redacted = _REDACTOR.redact(f"recovery codes, all of them: {' '.join(codes)}").text
    assert codes[-2] not in redacted
    assert codes[-1] in redacted


@pytest.mark.parametrize(
    "text",
    [
        "backup of 2021-2022 and 2022-2023 on tape",
        "backup code lives in src/backup, see restore_v2 and restore_v3",
        "recovery codes expired. Builds a8fk-20xz and m3pq-77rt are fine",
        "the rescue keys work with model a8fk-20xz",
        "one-time setup for host01ab and host02cd",
    ],
)
def test_what_is_no_series_of_codes_stays(text: str) -> None:
    """Years, names of files, what a later sentence speaks of, and one alone."""
    assert _REDACTOR.redact(text).text == text
