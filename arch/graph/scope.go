package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/expr"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model/limits"
)

// maxSize is the largest size that an expression may have: no model has more layers, heads, rows or tokens of context.
const maxSize = 1 << 24

// Scope evaluates expressions and conditions of a model for one file: in a layer, or outside of layers. Decl.At returns
// one. Scopes of one Decl share their cache and their first error, so that one goroutine at a time may use them.
type Scope struct {
	*facts
	layer int // -1 outside of layers
	pos   int64

	inDecoder bool // the layer is one of Decoder
}

// facts are what all scopes of a file share.
type facts struct {
	model  *Model
	file   *File
	values map[string]gguf.Value // by key of expressions
	lists  map[string]*list      // of values, decoded; nil after an error
	read   map[string]bool       // keys of values
	used   []string              // keys that expressions asked for since the last part began
	lacked []string              // those of them that decide a size and are missing
	err    error
	layers int // without MTP (NextN) layers; 0 before they are counted
	all    int // with MTP layers
	// decoderLayers is the number of layers of Decoder, 0 before they are declared
	decoderLayers int
	// decisionLayers is the number of layers of Decision, which layers and all do not count
	decisionLayers int
}

// list is a value of several numbers.
type list struct {
	elems    []expr.Value // the first limits.MaxLayers
	n        int
	greatest expr.Value
}

func newFacts(m *Model, f *File) *facts {
	return &facts{model: m, file: f, values: f.keys(), lists: map[string]*list{}, read: map[string]bool{}}
}

// Err returns the first error of all Scopes of a Decl: of kind fault.Broken, fault.Unsupported or, for expressions of
// the caller that do not parse, fault.Usage.
func (f *facts) Err() error { return f.err }

func (f *facts) fail(kind error, format string, args ...any) {
	if f.err == nil {
		f.err = fault.Errorf(kind, format, args...)
	}
}

func (f *facts) broken(format string, args ...any) { f.fail(fault.Broken, format, args...) }

// unknown records that no switch has the type of x, which is a kind of thing.
func (f *facts) unknown(kind string, x any) {
	f.fail(fault.Unsupported, "%s of unknown type %T", kind, x)
}

func (f *facts) fullKey(key string) string { return f.file.fullKey(key) }

// Layer returns the number of the scope's layer, -1 outside of layers.
func (s *Scope) Layer() int { return s.layer }

// AtPosition returns the scope for the token at a position, from 0; other scopes have position 0.
func (s *Scope) AtPosition(pos int64) *Scope { return &Scope{s.facts, s.layer, pos, s.inDecoder} }

// Value returns the value of an expression. ok is false if keys are missing; Value does not record an error then.
func (s *Scope) Value(n Num) (v expr.Value, ok bool) {
	v, _, ok = s.value(n)
	return v, ok
}

// Float returns the value of an expression, 1 for "". Missing keys are an error.
func (s *Scope) Float(n Num) float64 {
	if n == "" {
		return 1
	}
	v, used, ok := s.value(n)
	if !ok {
		s.missing(n, used)
	}
	return v.Float()
}

// Size returns the value of an expression that must be a whole number from 0 to 1<<24. Other values and missing keys
// are errors; Size returns 0 then.
func (s *Scope) Size(n Num) int64 {
	v, used, ok := s.value(n)
	if !ok {
		s.missing(n, used)
		return 0
	}
	size, fits := v.Int()
	if !fits || float64(size) != v.Float() || size < 0 || size > maxSize {
		s.broken("%s is %s, want a whole number from 0 to %d%s", n, number(v), maxSize, s.describe(used))
		return 0
	}
	return size
}

// Text returns the text of a key, "" without it. Other values are errors.
func (s *Scope) Text(key string) string {
	v, ok := s.lookup(key)
	if !ok {
		return ""
	}
	text, ok := v.Str()
	if !ok {
		s.broken("%q is %s, want a text", s.fullKey(key), v.Short())
	}
	return text
}

// Holds reports whether a condition holds.
func (s *Scope) Holds(c Cond) bool {
	e := s.parse(source{string(c), true})
	if e == nil {
		return false
	}
	env := s.env()
	holds := e.Holds(env)
	s.use(env.Used)
	return holds
}

// Has reports whether the file has a tensor with this name and ".weight", in the scope's layer.
func (s *Scope) Has(tensor string) bool {
	_, ok := s.file.Tensors[s.fullName(tensor)+".weight"]
	return ok
}

// fullName returns the name of a tensor in the file: "blk.3.ffn_up".
func (s *Scope) fullName(tensor string) string {
	if s.layer < 0 {
		return tensor
	}
	return s.Prefix() + "blk." + strconv.Itoa(s.layer) + "." + tensor
}

// Part returns p, or if that is Choose, the part of the scope's layer.
func (s *Scope) Part(p Part) Part {
	for {
		cases, ok := p.(Choose)
		if !ok {
			return p
		}
		p = Nothing{}
		for _, c := range cases {
			if s.In(c.In) {
				p = c.Then
				break
			}
		}
	}
}

// Steps returns the steps of the scope's layer, without ChooseStep.
func (s *Scope) Steps(steps []Step) []Step {
	var all []Step
	for _, x := range steps {
		cases, ok := x.(ChooseStep)
		if !ok {
			all = append(all, x)
			continue
		}
		for _, c := range cases {
			if s.In(c.In) {
				all = append(all, s.Steps(c.Steps)...)
				break
			}
		}
	}
	return all
}

// HeadSteps returns the steps of the scope's layer, without On.
func (s *Scope) HeadSteps(steps []HeadStep) []HeadStep {
	var all []HeadStep
	for _, x := range steps {
		if on, ok := x.(On); !ok {
			all = append(all, x)
		} else if s.In(on.In) {
			all = append(all, s.HeadSteps(on.Steps)...)
		}
	}
	return all
}

// ScoreSteps returns the steps of the scope's layer, without OnScores.
func (s *Scope) ScoreSteps(steps []ScoreStep) []ScoreStep {
	var all []ScoreStep
	for _, x := range steps {
		if on, ok := x.(OnScores); !ok {
			all = append(all, x)
		} else if s.In(on.In) {
			all = append(all, s.ScoreSteps(on.Steps)...)
		}
	}
	return all
}

// value returns the value of an expression, which is finite, and the keys that decide it, missing ones included.
func (s *Scope) value(n Num) (v expr.Value, used []string, ok bool) {
	e := s.parse(source{text: string(n)})
	if e == nil {
		return expr.Value{}, nil, false
	}
	env := s.env()
	v, ok = e.Eval(env)
	s.use(env.Used)
	if !ok {
		return expr.Value{}, env.Used, false
	}
	if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
		s.broken("%s is %v, want a finite number%s", n, f, s.describe(env.Used))
		return expr.Value{}, env.Used, false
	}
	return v, env.Used, true
}

// checkNumbers records an error if one of the expressions has a value that is not finite. An empty expression and
// missing keys are not errors. The keys decide no size.
func (s *Scope) checkNumbers(numbers ...Num) {
	used := s.used
	defer func() { s.used = used }()
	for _, n := range numbers {
		if n != "" {
			s.value(n)
		}
	}
}

// parse returns the parsed expression, nil after an error.
func (f *facts) parse(text source) *expr.Expr {
	e, err := text.parse()
	if err != nil {
		f.fail(fault.Usage, "%w", err)
		return nil
	}
	return e
}

func (s *Scope) env() *expr.Env {
	env := new(expr.Env)
	env.Key = func(op byte, key string) (expr.Value, bool) { return s.key(env, op, key) }
	env.Name = func(name string) (expr.Value, bool) { return s.name(env, name) }
	return env
}

// name is expr.Env.Name. Check has refused names that refer to themselves.
func (s *Scope) name(env *expr.Env, name string) (expr.Value, bool) {
	switch name {
	case "i":
		return expr.Int(int64(s.layer)), true
	case "pos":
		return expr.Int(s.pos), true
	}
	n, ok := s.model.dim(name)
	if !ok {
		s.fail(fault.Usage, "unknown name %q", name)
		return expr.Value{}, false
	}
	e := s.parse(source{text: string(n)})
	if e == nil {
		return expr.Value{}, false
	}
	return e.Eval(env)
}

// lookup returns the value of a key and marks it as read.
func (f *facts) lookup(key string) (gguf.Value, bool) {
	v, ok := f.values[key]
	if ok = ok && f.model.Counts(key); ok {
		f.read[key] = true
		return v, true
	}
	return gguf.Value{}, false
}

// key is expr.Env.Key. Missing keys count as used, so that messages can name them.
func (s *Scope) key(env *expr.Env, op byte, key string) (expr.Value, bool) {
	env.Use(key)
	v, ok := s.lookup(key)
	switch {
	case !ok:
		return expr.Value{}, false
	case op == '#':
		return expr.Int(int64(v.Len())), v.Type() == gguf.ArrayType
	case v.Type() != gguf.ArrayType:
		return s.number(key, "is", v)
	}
	l := s.list(key, v)
	i := max(0, s.layer)
	switch {
	case l == nil:
		return expr.Value{}, false
	case op == '^' && l.n > 0:
		return l.greatest, true
	case i >= len(l.elems) && s.layers > 0 && i >= s.layers: // lists may leave out MTP layers
		return expr.Value{}, false
	case i >= len(l.elems):
		s.broken("%q has %d elements, none for layer %d", s.fullKey(key), l.n, i)
		return expr.Value{}, false
	}
	return l.elems[i], true
}

// list returns the numbers of a key, nil after an error.
func (f *facts) list(key string, v gguf.Value) *list {
	if l, ok := f.lists[key]; ok {
		return l
	}
	l := new(list)
	for e := range v.Elems() {
		x, ok := f.number(key, "has the element", e)
		if !ok {
			l = nil
			break
		}
		if l.n == 0 || x.Float() > l.greatest.Float() {
			l.greatest = x
		}
		if l.n < limits.MaxLayers {
			l.elems = append(l.elems, x)
		}
		l.n++
	}
	f.lists[key] = l
	return l
}

// number returns the number that v is: the value of a key, or an element of it.
func (f *facts) number(key, is string, v gguf.Value) (expr.Value, bool) {
	if b, ok := v.Bool(); ok {
		return expr.Bool(b), true
	}
	if n, ok := v.Int(); ok {
		return expr.Int(n), true
	}
	want := "a number below 2^63"
	if x, ok := v.Float(); ok {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return expr.Float(x), true
		}
		want = "a finite number"
	}
	f.broken("%q %s %s, want %s", f.fullKey(key), is, v.Short(), want)
	return expr.Value{}, false
}

// use adds keys to used.
func (f *facts) use(keys []string) {
	for _, key := range keys {
		if !slices.Contains(f.used, key) {
			f.used = append(f.used, key)
		}
	}
}

// missing records that an expression has no value: one of the used keys is missing.
func (s *Scope) missing(n Num, used []string) {
	var keys []string
	for _, key := range used {
		if _, ok := s.values[key]; !ok {
			keys = append(keys, strconv.Quote(s.fullKey(key)))
		}
	}
	switch {
	case len(keys) == 0:
		s.broken("%s has no value%s", n, s.describe(used))
	case len(used) == 1 && string(n) == "@"+used[0]:
		s.broken("no key %s", keys[0])
	default:
		s.broken("no key %s, which %s needs", strings.Join(keys, " or "), n)
	}
}

// describe returns the values of keys for a message, with a colon before them.
func (s *Scope) describe(keys []string) string {
	var texts []string
	for _, key := range keys {
		v, ok := s.values[key]
		if !ok {
			continue
		}
		text := strconv.Quote(s.fullKey(key)) + " is " + v.Short()
		if l := s.lists[key]; l != nil && s.layer >= 0 && s.layer < len(l.elems) {
			text = strconv.Quote(s.fullKey(key)) + " of layer " + strconv.Itoa(s.layer) + " is " +
				number(l.elems[s.layer])
		} else if v.Type() == gguf.ArrayType {
			text = fmt.Sprintf("%q has %d elements", s.fullKey(key), v.Len())
		}
		if s.file.Source != nil {
			if from := s.file.Source(key); from != "" {
				text += fmt.Sprintf(" (from %q)", from)
			}
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + fault.List(texts)
}

// number returns a value as text.
func number(v expr.Value) string {
	if n, ok := v.Int(); ok && float64(n) == v.Float() {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(v.Float(), 'g', -1, 64)
}
