package quantize

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/quants"
)

// Recipe maps the tensors of a model to types.
//
// A recipe is a default type and a list of rules. For a tensor the first rule holds whose roles include the tensor's
// and whose conditions are all met; the default type if none does. Then every amending rule that applies is carried out
// on the result. Rules ignore the types that a row's length allows; fallbackFor replaces a type afterwards.
type Recipe struct {
	Name     string    // "Q4_K_M"
	Aliases  []string  // "Q4_K"
	FileType uint32    // general.file_type; meaningless if Copy
	Type     gguf.Type // default type; meaningless if Copy
	Copy     bool      // every tensor stays as it is
	Own      bool      // the reference has no such recipe; FileType is its number for files of such weights
	Desc     string    // one line for help texts
	// BPW is the bits per weight of Llama 3 8B under this recipe, with an
	// importance matrix where the recipe needs one; 0 if Copy.
	BPW float64

	rules ruleset
	need  []gguf.Type // types refused without importance, besides those that say so themselves (quants.Importance)
	given []TensorTypeRule
}

// With returns the recipe with types for some tensors: rules that come after those of
// PlanOptions.TensorTypes and before the recipe's own.
func (r *Recipe) With(given []TensorTypeRule) *Recipe {
	other := *r
	other.given = slices.Concat(r.given, given)
	return &other
}

type ruleset struct {
	first []rule // the first match decides
	amend []rule // all matches apply, in order
}

// rule gives a type to tensors of some roles when all conditions hold.
type rule struct {
	roles Role
	to    gguf.Type
	when  []cond
}

func use(roles Role, to gguf.Type, when ...cond) rule { return rule{roles, to, when} }

// cond is a named condition on a tensor and the model around it.
type cond struct {
	text  string
	holds func(s *site) bool
}

// site has the facts about a tensor that rules use.
type site struct {
	traits *traits
	name   string
	role   Role // RoleOutput for a tied embedding
	ne     []int64
	def    gguf.Type // the recipe's default type
	chosen gguf.Type // amending rules: the type so far
	seen   int64     // tensors of this kind of role that rules have handled before
	err    error     // a fact that a condition needed is missing
}

// traits has the facts about the model that rules use.
type traits struct {
	arch       string
	experts    int64
	heads      int64 // query heads of the first layer
	headsKV    int64 // key and value heads of the first layer
	layers     int64 // -1: not stated
	predict    int64 // MTP (NextN) layers among these
	values     int64 // tensors with a role of roleVV
	tied       bool  // no output head of its own
	importance bool
}

// gqa returns the number of query heads per key and value head, 0 without key and value heads.
func (m *traits) gqa() int64 {
	if m.headsKV == 0 {
		return 0
	}
	return m.heads / m.headsKV
}

// position returns the tensor's number among n, for rules that depend on depth.
// Value tensors are counted among themselves, others by layer. In models with
// experts the layers of feed-forward tensors are read from names, since one
// layer may have several; elsewhere the count of tensors seen is taken for the
// layer.
func (s *site) position() (i, n int64) {
	if s.role&roleVV != 0 {
		return s.seen, s.traits.values
	}
	n = s.layers()
	if s.traits.experts <= 1 || s.err != nil {
		return s.seen, n
	}
	i = layerOf(s.name)
	if i < 0 || i >= n {
		s.err = &InputError{
			Object: fmt.Sprintf("tensor %q", s.name),
			Msg:    fmt.Sprintf("the recipe needs its layer: want a name beginning with blk.<0 to %d>", n-1),
		}
	}
	return i, n
}

// layers returns the model's number of layers.
func (s *site) layers() int64 {
	n := s.traits.layers
	if n < 0 {
		s.err = &InputError{
			Object: fmt.Sprintf("key %q", gguf.ArchKey(s.traits.arch, blockCountKey)),
			Msg:    fmt.Sprintf("missing, but the recipe needs the number of layers for tensor %q", s.name),
		}
	}
	return n
}

// outerOrThird reports whether layer i of n is in the first or last eighth, or
// every third one in between.
func outerOrThird(i, n int64) bool {
	return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2
}

// The conditions without a parameter.
var (
	falcon    = cond{"falcon", func(s *site) bool { return s.traits.arch == "falcon" }}
	notFalcon = cond{"not falcon", func(s *site) bool { return s.traits.arch != "falcon" }}

	gqa4     = cond{"4 or more query heads per key", func(s *site) bool { return s.traits.gqa() >= 4 }}
	experts4 = cond{"4 or more experts", func(s *site) bool { return s.traits.experts >= 4 }}
	experts8 = cond{"8 experts", func(s *site) bool { return s.traits.experts == 8 }}
	not8     = cond{"not 8 experts", func(s *site) bool { return s.traits.experts != 8 }}

	withImportance = cond{"with importance", func(s *site) bool { return s.traits.importance }}
	noImportance   = cond{"without importance", func(s *site) bool { return !s.traits.importance }}

	// 80 layers with shared key heads are the largest Llama models and their
	// like: their value tensors are small, so bits there cost little.
	big70 = cond{"70B model", func(s *site) bool {
		if s.traits.layers-s.traits.predict != 80 {
			return false
		}
		row, ok := bigArchs[s.traits.arch]
		return ok && (!row.onlyShared || s.traits.heads != s.traits.headsKV)
	}}

	more = cond{"outer or every third layer", func(s *site) bool { return outerOrThird(s.position()) }}

	middle = cond{"middle layer", func(s *site) bool {
		i, n := s.position()
		return n/8 <= i && i < 7*n/8
	}}

	misfit  = cond{"row not whole blocks", func(s *site) bool { return !fits(s.def, s.ne[0]) }}
	stacked = cond{"stack of matrices", func(s *site) bool { return len(s.ne) > 2 && s.ne[2] > 1 }}
)

// bigArchs lists the architectures whose 80-layer models count as 70B.
var bigArchs = map[string]struct{ onlyShared bool }{
	"llama":       {onlyShared: true},
	"llama-embed": {onlyShared: true},
	"deci":        {},
	"olmo":        {},
	"qwen2":       {},
}

// early holds for the first 1/part of the layers.
func early(part int64) cond {
	return cond{fmt.Sprintf("first 1/%d of layers", part), func(s *site) bool {
		i, n := s.position()
		return i < n/part
	}}
}

// earlySeen is early by the count of tensors, also in models with experts.
func earlySeen(part int64) cond {
	return cond{fmt.Sprintf("first 1/%d of layers", part), func(s *site) bool { return s.seen < s.layers()/part }}
}

// leading holds for the first n tensors of the role.
func leading(n int64) cond {
	return cond{fmt.Sprintf("one of the first %d", n), func(s *site) bool { return s.seen < n }}
}

// was holds when the type chosen so far is one of types.
func was(types ...gguf.Type) cond {
	return cond{fmt.Sprintf("instead of %v", types), func(s *site) bool { return slices.Contains(types, s.chosen) }}
}

// find returns the first of rules that applies to s.
func find(rules []rule, s *site) (rule, bool) {
	for _, r := range rules {
		if r.roles&s.role != 0 && r.applies(s) {
			return r, true
		}
	}
	return rule{}, false
}

func (r rule) applies(s *site) bool {
	for _, c := range r.when {
		if !c.holds(s) {
			return false
		}
	}
	return true
}

// text describes r as applied to role.
func (r rule) text(role Role) string {
	var why []string
	for _, c := range r.when {
		why = append(why, c.text)
	}
	if why == nil {
		return role.String()
	}
	return role.String() + ", " + strings.Join(why, ", ")
}

// choose returns the type r gives the tensor at s, and why. s.err is set if the metadata lack a fact that a rule needs.
func (r *Recipe) choose(s *site) (gguf.Type, string) {
	s.def, s.chosen = r.Type, r.Type
	why := "default"
	if hit, ok := find(r.rules.first, s); ok {
		s.chosen, why = hit.to, hit.text(s.role)
	}
	for _, a := range r.rules.amend {
		if a.roles&s.role != 0 && a.applies(s) {
			s.chosen, why = a.to, a.text(s.role)
		}
	}
	return s.chosen, why
}

// needs reports whether a tensor of type t of this role is refused without
// importance.
func (r *Recipe) needs(t gguf.Type, role Role) bool {
	switch quants.Lookup(t).Importance() {
	case quants.ImportanceNeeded:
		return true
	case quants.ImportanceInLayers:
		return role&(RoleOutput|RoleEmbd) == 0
	}
	return role&(RoleOutput|RoleEmbd) == 0 && slices.Contains(r.need, t)
}

// Recipes returns all recipes in the order of the reference's help text.
func Recipes() []*Recipe {
	all := make([]*Recipe, len(recipes))
	for i := range recipes {
		all[i] = &recipes[i]
	}
	return all
}

// LookupRecipe returns the recipe of that name or alias, in any case, or the reference's recipe of that decimal
// general.file_type number.
func LookupRecipe(s string) (*Recipe, bool) {
	id, err := strconv.ParseUint(s, 10, 32)
	for _, r := range Recipes() {
		if strings.EqualFold(r.Name, s) || err == nil && !r.Copy && !r.Own && uint64(r.FileType) == id {
			return r, true
		}
		for _, a := range r.Aliases {
			if strings.EqualFold(a, s) {
				return r, true
			}
		}
	}
	return nil, false
}

// RecipeOf returns the recipe of a file by its general.file_type, one of the reference if there is one; ok is false if
// that names none.
func RecipeOf(m gguf.Metadata) (r *Recipe, ok bool) {
	v, stated := m.Get(gguf.KeyFileType)
	id, ok := v.Int()
	if !stated || !ok {
		return nil, false
	}
	id &^= guessed
	if r, ok := LookupRecipe(strconv.FormatInt(id, 10)); ok {
		return r, true
	}
	for _, r := range Recipes() {
		if r.Own && int64(r.FileType) == id {
			return r, true
		}
	}
	return nil, false
}
