package onig

import (
	"strings"
	"sync"

	"ggforge/tokenizer/internal/uni"
)

// categories are the general categories by their short names.
var categories = strings.Fields(
	"Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cn Co")

// longNames maps other names of categories and properties, and the POSIX names, to the names in lookup.
var longNames = map[string]string{
	"letter": "l", "casedletter": "lc", "uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt",
	"modifierletter": "lm", "otherletter": "lo", "mark": "m", "combiningmark": "m", "nonspacingmark": "mn",
	"spacingmark":   "mc",
	"enclosingmark": "me", "number": "n", "decimalnumber": "nd", "letternumber": "nl", "othernumber": "no",
	"punctuation": "p", "connectorpunctuation": "pc", "dashpunctuation": "pd", "openpunctuation": "ps",
	"closepunctuation": "pe", "initialpunctuation": "pi", "finalpunctuation": "pf", "otherpunctuation": "po",
	"symbol": "s", "mathsymbol": "sm", "currencysymbol": "sc", "modifiersymbol": "sk", "othersymbol": "so",
	"separator": "z", "spaceseparator": "zs", "lineseparator": "zl", "paragraphseparator": "zp",
	"other": "c", "control": "cc", "format": "cf", "unassigned": "cn", "privateuse": "co",
	"punct": "p", "digit": "nd", "cntrl": "cc",
	"posix:digit": "nd", "posix:cntrl": "cc",
	"alpha": "alphabetic", "posix:alpha": "alphabetic", "upper": "uppercase", "posix:upper": "uppercase",
	"lower": "lowercase", "posix:lower": "lowercase", "posix:word": "word", "posix:space": "space",
	"whitespace":  "space",
	"posix:alnum": "alnum", "posix:xdigit": "xdigit", "posix:ascii": "ascii", "posix:blank": "blank",
}

// scripts maps the names of scripts, as plain returns them, to their tables.
var scripts = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, name := range uni.Names("sc=") {
		m[plain(name)] = "sc=" + name
	}
	return m
})

// plain returns a name in lower case without blanks, underscores and hyphens, which do not count.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

var (
	mu    sync.Mutex
	known = map[string]*uni.Set{}
)

// named returns the set of a name, nil if there is none. The caller must not change it.
func named(name string) *uni.Set {
	mu.Lock()
	defer mu.Unlock()
	s, ok := known[name]
	if !ok {
		if s = lookup(name); s != nil { // unknown names, which come from files, are not kept
			known[name] = s
		}
	}
	return s
}

// lookup builds the set of a category, property or script; nil for an unknown name.
func lookup(name string) *uni.Set {
	name = plain(name)
	if long, ok := longNames[name]; ok {
		name = long
	}
	table := func(name string) *uni.Set { s, _ := uni.Table(name); return s }
	category := func(prefixes ...string) *uni.Set {
		s := uni.Of()
		for _, c := range categories {
			for _, p := range prefixes {
				if strings.HasPrefix(strings.ToLower(c), p) {
					s.Union(table("gc=" + c))
				}
			}
		}
		return s
	}
	span := func(lo, hi rune) *uni.Set { s := uni.Of(); s.Add(lo, hi); return s }
	switch name {
	case "l", "m", "n", "p", "s", "z", "c":
		return category(name)
	case "lc":
		return category("lu", "ll", "lt")
	case "any":
		return uni.Of().Complement()
	case "assigned":
		return category("cn").Complement()
	case "ascii":
		return span(0, 127)
	case "alphabetic", "emoji":
		return table(name)
	case "uppercase":
		return table("upper")
	case "lowercase":
		return table("lower")
	case "word":
		return table("onig_w")
	case "space":
		s := category("z")
		s.Add('\t', '\r')
		s.Add(0x85, 0x85)
		return s
	case "alnum":
		s := category("nd")
		s.Union(table("alphabetic"))
		return s
	case "xdigit":
		s := span('0', '9')
		s.Add('A', 'F')
		s.Add('a', 'f')
		return s
	case "blank":
		s := category("zs")
		s.Add('\t', '\t')
		return s
	case "posix:punct":
		return category("p", "s")
	}
	for _, c := range categories {
		if strings.ToLower(c) == name {
			return table("gc=" + c)
		}
	}
	if t, ok := scripts()[name]; ok {
		return table(t)
	}
	return nil
}
