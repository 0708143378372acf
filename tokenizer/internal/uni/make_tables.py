import sys, json, os
from tokenizers import Regex, pre_tokenizers as P, normalizers as N, NormalizedString
ALL=[c for c in range(1,0x110000) if not 0xD800<=c<=0xDFFF]
T="".join(map(chr,ALL))
def ranges(cs):
    out=[]
    for c in cs:
        if out and out[-1][1]==c-1: out[-1][1]=c
        else: out.append([c,c])
    return out
def cls(rx):
    try: p=P.Split(Regex(rx),"removed",invert=True)
    except Exception as e: return None
    cs=[]
    for s,(a,b) in p.pre_tokenize_str(T): cs+= ALL[a:b]
    return ranges(cs)
out={}
import subprocess
gcs="Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cn Co".split()
out["gc"]={g:cls(r"\p{%s}"%g) for g in gcs}
names=open(os.path.join(os.path.dirname(__file__),"scripts.txt")).read().split()
out["sc"]={s:cls(r"\p{%s}"%s) for s in names}
out["posix"]={s:cls(r) for s,r in [("s",r"\s"),("w",r"\w"),("d",r"\d"),("h",r"\h"),("dot","."),("alpha",r"\p{Alpha}"),("upper",r"\p{Upper}"),("lower",r"\p{Lower}"),("punct",r"\p{Punct}"),("bpunct","[[:punct:]]"),("balpha","[[:alpha:]]"),("alnum","[[:alnum:]]"),("L",r"\p{L}"),("cased_s","(?i:s)"),("P",r"\p{P}"),("S",r"\p{S}"),("M",r"\p{M}"),("N",r"\p{N}"),("Z",r"\p{Z}"),("C",r"\p{C}"),("emoji",r"\p{Emoji}"),("alphabetic",r"\p{Alphabetic}"),("graph","[[:graph:]]"),("print","[[:print:]]"),("cntrl","[[:cntrl:]]"),("blank","[[:blank:]]"),("space","[[:space:]]"),("digit","[[:digit:]]"),("xdigit","[[:xdigit:]]"),("word","[[:word:]]"),("bupper","[[:upper:]]"),("blower","[[:lower:]]")]}
def pre(p,inv=False):
    cs=[]
    return cs
# char sets of pre-tokenizers
def covered(pt):  # characters that are in a piece
    cs=[]
    for s,(a,b) in pt.pre_tokenize_str(T): cs+=ALL[a:b]
    return cs
S=set(covered(P.WhitespaceSplit()))
out["whitespace"]=ranges([c for c in ALL if c not in S])
S=set()
for s,(a,b) in P.Digits(individual_digits=False).pre_tokenize_str("".join("a"+chr(c) for c in ALL)):
    if b-a==1 and False: pass
# numeric: "a"+c splits
txt="".join("a"+chr(c) for c in ALL)
bnd=set()
for s,(a,b) in P.Digits(individual_digits=True).pre_tokenize_str(txt): bnd.add(a)
out["numeric"]=ranges([c for i,c in enumerate(ALL) if 2*i+1 in bnd])
bnd=set()
for s,(a,b) in P.Punctuation().pre_tokenize_str(txt): bnd.add(a)
out["punct"]=ranges([c for i,c in enumerate(ALL) if 2*i+1 in bnd])
w=[];o=[];sp=[]
txt="".join("a"+chr(c)+" " for c in ALL)
pieces={}
for s,(a,b) in P.Whitespace().pre_tokenize_str(txt): pieces[a]=b
for i,c in enumerate(ALL):
    if pieces.get(3*i)==3*i+2: w.append(c)
    elif 3*i+1 in pieces: o.append(c)
    else: sp.append(c)
out["rust_w"]=ranges(w); out["rust_s"]=ranges(sp)
lower={}
L=N.Lowercase()
for c in ALL:
    s=L.normalize_str(chr(c))
    if s!=chr(c): lower[c]=[ord(x) for x in s]
out["lower"]=lower
for nm,n in [("stripaccents",N.StripAccents()),("bertclean",N.BertNormalizer(clean_text=True,handle_chinese_chars=False,strip_accents=False,lowercase=False)),("nmt",N.Nmt())]:
    rm=[];sps=[]
    for c in ALL:
        s=n.normalize_str(chr(c))
        if s=="": rm.append(c)
        elif s==" " and c!=32: sps.append(c)
    out[nm]=[ranges(rm),ranges(sps)]
n=N.BertNormalizer(clean_text=False,handle_chinese_chars=False,strip_accents=True,lowercase=False)
out["bert_mn"]=ranges([c for c in ALL if n.normalize_str(chr(c))==""])
n=N.BertNormalizer(clean_text=False,handle_chinese_chars=True,strip_accents=False,lowercase=False)
out["bert_chinese"]=ranges([c for c in ALL if n.normalize_str(chr(c)).startswith(" ") and c!=32])
for nm,n in [("nfd",N.NFD()),("nfkd",N.NFKD()),("nfc",N.NFC()),("nfkc",N.NFKC())]:
    out[nm]={c:[ord(x) for x in n.normalize_str(chr(c))] for c in ALL if n.normalize_str(chr(c))!=chr(c)}
# combining class not zero: order swaps with U+0301 (230) / U+0323 (220) / U+0345 (240) ...
n=N.NFD()
ccc={}
probes=[(0x0345,240),(0x0301,230),(0x0323,220),(0x1dfa,218)]
sw=[]
for c in ALL:
    ch=chr(c)
    if len(n.normalize_str(ch))!=1: continue
    a=n.normalize_str("a\u0345"+ch)      # ccc(c) in 1..239 moves before 0345(240)
    b=n.normalize_str("a"+ch+"\u0334")   # ccc > 1: 0334 (1) moves before
    if a!="a\u0345"+ch or b!="a"+ch+"\u0334": sw.append(c)
out["ccc"]=ranges(sw)
json.dump(out,open("/srv/kbpe/probe.json","w"))
print({k:(len(v) if v else v) for k,v in out.items()})
print([s for s,v in out["sc"].items() if v is None])
print([s for s,v in out["posix"].items() if v is None], [g for g,v in out["gc"].items() if v is None])
