package jinja

import "strings"

// globals are the functions that a template can call by name.
var globals map[string]*function

func init() { // functions call methods, which name globals
	globals = map[string]*function{
		"range":           {"range", makeRange},
		"dict":            {"dict", makeDict},
		"namespace":       {"namespace", makeNamespace},
		"raise_exception": {"raise_exception", raise},
		"strftime_now":    {"strftime_now", strftimeNow},
		"joiner":          {"joiner", makeJoiner},
		"cycler":          {"cycler", makeCycler},
		"self": {"self", func(r *run, a *callArgs) Value {
			r.failf("self is called, want the name of a block")
			return nil
		}},
	}
}

func makeRange(r *run, a *callArgs) Value {
	a.noNames(r, "range")
	v := a.bind(r, "range", []string{"start", "stop?", "step?"})
	start, end, step := int64(0), r.int("range", v[0]), int64(1)
	if _, one := v[1].(absent); !one {
		start, end = end, r.int("range", v[1])
	}
	if _, no := v[2].(absent); !no {
		if step = r.int("range", v[2]); step == 0 {
			r.failf("range with step 0")
		}
	}
	n := int64(0)
	const far = 1 << 60
	if max(start, end, step) > far || min(start, end, step) < -far {
		r.limit("range to %d, want at most %d numbers", end, MaxRange)
	}
	if step > 0 && start < end {
		n = (end-start-1)/step + 1
	} else if step < 0 && start > end {
		n = (start-end-1)/-step + 1
	}
	if n > MaxRange {
		r.limit("range of %d numbers, want at most %d", n, MaxRange)
	}
	return ranged{start, step, n}
}

// dictOf is dict(v): of a dict, or of pairs.
func (r *run) dictOf(d *dict, v Value) {
	if from, ok := v.(*dict); ok {
		r.alloc(96 * len(from.keys))
		for i, k := range from.keys {
			d.put(r.keyOf(k, 0), k, from.values[i])
		}
		return
	}
	for _, p := range r.iterate(v) {
		items := r.iterate(p)
		if len(items) != 2 {
			r.failf("dict of %d values, want pairs", len(items))
		}
		r.alloc(96)
		d.put(r.keyOf(items[0], 0), items[0], items[1])
	}
}

func makeDict(r *run, a *callArgs) Value {
	d := newDict()
	if len(a.list) > 1 {
		r.failf("dict: %d arguments, want at most 1", len(a.list))
	}
	for _, v := range a.list {
		r.dictOf(d, v)
	}
	for i, n := range a.names {
		r.alloc(96)
		d.set(n, a.named[i])
	}
	return d
}

func makeNamespace(r *run, a *callArgs) Value { return &namespace{makeDict(r, a).(*dict)} }

func raise(r *run, a *callArgs) Value {
	v := a.bind(r, "raise_exception", []string{"message"})[0]
	text := r.str(v)
	if len(text) > maxRaised {
		text = strings.ToValidUTF8(text[:maxRaised], "") + "…"
	}
	r.fail(Raised, "%s", text)
	return nil
}

func strftimeNow(r *run, a *callArgs) Value {
	f := r.text("strftime_now", a.bind(r, "strftime_now", []string{"format"})[0])
	s := r.now(f)
	r.alloc(len(s))
	return s
}

func makeJoiner(r *run, a *callArgs) Value {
	sep := optional(a.bind(r, "joiner", []string{"sep?"})[0], Value(", "), func(v Value) Value { return v })
	used := false
	return &function{"joiner", func(r *run, a *callArgs) Value {
		a.bind(r, "joiner", nil)
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

func makeCycler(r *run, a *callArgs) Value {
	a.noNames(r, "cycler")
	items := a.list
	if len(items) == 0 {
		r.failf("cycler without values")
	}
	i := 0
	vars := newDict()
	vars.set("current", items[0])
	vars.set("reset", &function{"reset", func(r *run, a *callArgs) Value {
		i = 0
		vars.set("current", items[0])
		return nil
	}})
	vars.set("next", &function{"next", func(r *run, a *callArgs) Value {
		v := items[i]
		i = (i + 1) % len(items)
		vars.set("current", items[i])
		return v
	}})
	return &namespace{vars}
}

// hidden reports whether a name is an attribute that the sandbox hides: one of Python's internals, or a method that
// changes its list or dict.
func hidden(x Value, name string) bool {
	switch x.(type) {
	case *list:
		switch name {
		case "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort":
			return true
		}
	case *dict:
		switch name {
		case "clear", "pop", "popitem", "setdefault", "update":
			return true
		}
	}
	return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && len(name) > 4
}
