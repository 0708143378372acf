#!/usr/bin/env python3
"""Write tables.txt and lower.txt: the character data that the tokenizers library has, asked of the library itself.

  make_tables.py      where python3-tokenizers 0.23.1 is installed; takes a few minutes

The formats are described in uni.go. Every set is found by giving each character of Unicode to the part of the library
that uses it. Only "later" is a comparison: the characters whose normal forms or combining classes are not those of
Python's newer unicodedata.
"""
import os, unicodedata

from tokenizers import Regex, normalizers as N, pre_tokenizers as P

HERE = os.path.dirname(os.path.abspath(__file__))
ALL = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]  # without NUL, which Oniguruma's Split cannot be given
TEXT = "".join(map(chr, ALL))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cn Co".split()
SCRIPTS = """Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi
Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot
Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian
Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana
Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar
Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao
Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki
Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya
Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian
Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham
Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho
Warang_Citi Yezidi Yi Zanabazar_Square""".split()


def base36(n):
    s = ""
    while True:
        s = "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36] + s
        n //= 36
        if not n:
            return s


def ranges(chars):
    out, prev, run = [], 0, None
    for c in sorted(chars) + [None]:
        if run and c is not None and c == run[1] + 1:
            run[1] = c
            continue
        if run:
            lo, hi = run
            out.append(base36(lo - prev) + ("-" + base36(hi - lo) if hi > lo else ""))
            prev = hi + 1
        run = [c, c]
    return " ".join(out)


def regex(expr):
    """the characters that an expression for one character matches"""
    found = set()
    for _, (a, b) in P.Split(Regex(expr), "removed", invert=True).pre_tokenize_str(TEXT):
        found.update(ALL[a:b])
    return found


def splits_off(pre):
    """the characters that a pre-tokenizer parts from a letter before them"""
    starts = {a for _, (a, _) in pre.pre_tokenize_str("".join("a" + chr(c) for c in ALL))}
    return {c for i, c in enumerate(ALL) if 2 * i + 1 in starts}


def words():
    """the characters that the pre-tokenizer Whitespace joins to a letter before them"""
    ends = {a: b for _, (a, b) in P.Whitespace().pre_tokenize_str("".join("a" + chr(c) + " " for c in ALL))}
    return {c for i, c in enumerate(ALL) if ends.get(3 * i) == 3 * i + 2}


def removed(normalizer):
    return {c for c in ALL if normalizer.normalize_str(chr(c)) == ""}


def later():
    forms = [("NFC", N.NFC()), ("NFD", N.NFD()), ("NFKC", N.NFKC()), ("NFKD", N.NFKD())]
    out = set()
    for c in ALL:
        ch = chr(c)
        if any(n.normalize_str(ch) != unicodedata.normalize(f, ch) for f, n in forms):
            out.add(c)
        elif unicodedata.combining(ch) and not unicodedata.decomposition(ch):
            # a class above 1 lets U+0334 (class 1) pass, one below 240 passes U+0345 (240)
            nfd = N.NFD().normalize_str
            if nfd("a\u0345" + ch) == "a\u0345" + ch and nfd("a" + ch + "\u0334") == "a" + ch + "\u0334":
                out.add(c)
        d = unicodedata.decomposition(ch)
        if c in out and d and not d.startswith("<"):  # its parts compose to it in newer data only
            out.update(int(x, 16) for x in d.split() if unicodedata.normalize("NFC", chr(int(x, 16))) == chr(int(x, 16)) and int(x, 16) > 0x11000)
    return out


def lower():
    runs, fn = [], N.Lowercase().normalize_str
    for c in ALL:
        s = fn(chr(c))
        if s == chr(c) or len(s) > 1:  # U+0130, the only one, is in uni.go
            continue
        delta = ord(s) - c
        if runs:
            first, n, step, d = runs[-1]
            if d == delta and n == 1 and c - first in (1, 2):
                runs[-1] = [first, 2, c - first, d]
                continue
            if d == delta and n > 1 and c == first + n * step:
                runs[-1][1] += 1
                continue
        runs.append([c, 1, 1, delta])
    return runs


def main():
    bert = lambda **on: N.BertNormalizer(**{**dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False), **on})
    sets = {"gc=" + g: regex(r"\p{%s}" % g) | ({0} if g == "Cc" else set()) for g in CATEGORIES}
    sets.update(("sc=" + s, regex(r"\p{%s}" % s) | ({0} if s == "Common" else set())) for s in sorted(SCRIPTS))
    sets["alphabetic"], sets["upper"], sets["lower"] = regex(r"\p{Alphabetic}"), regex(r"\p{Upper}"), regex(r"\p{Lower}")
    sets["onig_w"], sets["emoji"] = regex(r"\w"), regex(r"\p{Emoji}")
    sets["rust_w"], sets["numeric"], sets["punct"] = words(), splits_off(P.Digits(individual_digits=True)), splits_off(P.Punctuation())
    sets["combining"], sets["nonspacing"] = removed(N.StripAccents()), removed(bert(strip_accents=True))
    sets["other"] = removed(bert(clean_text=True)) - {0xFFFD} | {0}
    sets["later"] = later()
    with open(os.path.join(HERE, "tables.txt"), "w") as f:
        for name, chars in sets.items():
            f.write(name + "\t" + ranges(chars) + "\n")
    with open(os.path.join(HERE, "lower.txt"), "w") as f:
        for first, n, step, delta in lower():
            f.write("%x %d %d %d\n" % (first, n, step, delta))


main()
