package arch_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/shape"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/mutate"
)

var update = flag.Bool("update", false, "write testdata/verdicts.txt")

// verdictsFile has the changes of metadata that no check finds: a key with a change, and the architectures in which a
// made-up model with that change is accepted, "*" for all that have the key.
const verdictsFile = "verdicts.txt"

// anyDimension are dimensions of which one more is accepted, as "ARCH: TENSOR NUMBER", with the reason.
var anyDimension = map[string]string{
	"arwkv7: blk.N.time_mix_lerp_fused.weight 3": "llama.cpp loads token shifts with and without that of the gate",
	"qwen4exp: per_layer_token_embd.weight 1":    "no key has the size of the hash table",
}

// lacking are models that the reference's converter writes without a key that llama.cpp requires.
var lacking = map[string]string{"exaone-moe/no-draft": `no key "exaone-moe.expert_gating_func"`}

var numberInName = regexp.MustCompile(`\.\d+\.`)

// verdicts collects the verdicts on changed models.
type verdicts struct {
	*testing.T
	has, accepted map[string]map[string]bool // architectures, by key and change
	failed        map[string]bool            // dimensions of which one more is accepted
	seen          map[string]bool            // models with the same keys and kinds of tensors are changed once
}

// TestVerdicts checks every made-up model, and each of them with one dimension or one key changed.
func TestVerdicts(t *testing.T) {
	v := &verdicts{t, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{},
		map[string]bool{}}
	mutate.EachModel(t, v.add)
	var b strings.Builder
	for _, change := range slices.Sorted(maps.Keys(v.accepted)) {
		archs := slices.Sorted(maps.Keys(v.accepted[change]))
		list := strings.Join(archs, " ")
		if len(archs) == len(v.has[change]) {
			list = "*"
		}
		fmt.Fprintf(&b, "%s: %s\n", change, list)
	}
	path := filepath.Join("testdata", verdictsFile)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if !cpu.HasVectors { // a part of the models
		return
	}
	for id := range anyDimension {
		if !v.failed[id] {
			t.Errorf("%s: one more is refused", id)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range got {
		if !slices.Contains(old, line) {
			t.Errorf("not in %s: %s", path, line)
		}
	}
	for _, line := range old {
		if !slices.Contains(got, line) {
			t.Errorf("only in %s: %s", path, line)
		}
	}
}

// add checks a model.
func (v *verdicts) add(name string, m *model.Model) {
	a := arch.ForFile(m.Metadata)
	if a == nil {
		v.Errorf("%s: no table of %q", name, m.Architecture())
		return
	}
	var tensors []shape.Tensor
	for i := range m.Tensors {
		tensors = append(tensors, shape.Tensor{Name: m.Tensors[i].Name, NE: m.Tensors[i].NE})
	}
	accepted := func(m gguf.Metadata) bool {
		errs, unknown := a.Check(m, tensors, nil)
		return errs == nil && unknown == nil
	}
	if want := lacking[name]; want != "" {
		if errs, _ := a.Check(m.Metadata, tensors, nil); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			v.Errorf("%s: %v, want %s", name, errs, want)
		}
		return
	}
	if errs, unknown := a.Check(m.Metadata, tensors, nil); errs != nil || unknown != nil {
		v.Errorf("%s (%s): %v; unknown tensors: %q", name, a.Name, errs, unknown)
		return
	}
	if id := likeness(m); v.seen[id] {
		return
	} else {
		v.seen[id] = true
	}
	done := map[string]bool{} // one of each kind of layer
	for i := range tensors {
		ne := tensors[i].NE
		kind := numberInName.ReplaceAllString(tensors[i].Name, ".N.")
		if seen := fmt.Sprint(kind, ne); done[seen] {
			continue
		} else {
			done[seen] = true
		}
		for k := range ne {
			tensors[i].NE = slices.Clone(ne)
			tensors[i].NE[k]++
			id := fmt.Sprintf("%s: %s %d", a.Name, kind, k)
			if accepted(m.Metadata) && !v.failed[id] {
				v.failed[id] = true
				if anyDimension[id] == "" {
					v.Errorf("%s: one more is accepted (%s)", id, name)
				}
			}
		}
		tensors[i].NE = ne
	}
	for _, kv := range m.Metadata {
		key, ok := strings.CutPrefix(kv.Key, a.Name+".")
		if !ok {
			continue
		}
		for change, value := range changes(kv.Value) {
			changed := slices.Clone(m.Metadata)
			if value == nil {
				changed.Delete(kv.Key)
			} else {
				changed.Set(kv.Key, *value)
			}
			id := key + " " + change
			note(v.has, id, a.Name)
			if accepted(changed) {
				note(v.accepted, id, a.Name)
			}
		}
	}
}

// likeness returns the architecture, the keys and the kinds of tensors of a model.
func likeness(m *model.Model) string {
	all := map[string]bool{}
	for _, kv := range m.Metadata {
		all[kv.Key] = true
	}
	for i := range m.Tensors {
		all[numberInName.ReplaceAllString(m.Tensors[i].Name, ".N.")] = true
	}
	return m.Architecture() + strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

func note(m map[string]map[string]bool, id, name string) {
	if m[id] == nil {
		m[id] = map[string]bool{}
	}
	m[id][name] = true
}

// changes returns values in place of one, by what is changed; nil for none.
func changes(v gguf.Value) map[string]*gguf.Value {
	all := map[string]*gguf.Value{"missing": nil}
	set := func(change string, v gguf.Value) { all[change] = &v }
	if n, ok := v.Int(); ok {
		set("+1", gguf.Uint32(uint32(n+1)))
		set("0", gguf.Uint32(0))
	}
	if v.Type() != gguf.ArrayType || v.Len() == 0 {
		return all
	}
	var more []gguf.Value
	for e := range v.Elems() {
		n, ok := e.Int()
		if !ok {
			return all
		}
		more = append(more, gguf.Uint32(uint32(n+1)))
	}
	set("+1", gguf.Array(gguf.Uint32Type, more...))
	set("shorter", gguf.Array(gguf.Uint32Type, more[1:]...))
	return all
}
