package quantize

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
)

// The rules for image and video models are those of llama-quantize b3962 with tools/lcpp.patch of city96/ComfyUI-GGUF,
// branch auto_convert at 4dfc025: which weights are converted depends on the architecture (diffusion.Model.Keep), and
// to which type on their names and the recipe alone. Whatever counts tensors counts them in the order of the file.

// imageRoles give the role of a weight of an image model; the first row that matches wins. The second matrix of a
// feed-forward network counts as RoleDown.
var imageRoles = []struct {
	all  []nameTest
	role Role
}{
	{[]nameTest{has("attn_v.weight")}, RoleV},
	{[]nameTest{has(".to_v.weight")}, RoleV},
	{[]nameTest{has(".v.weight")}, RoleV},
	{[]nameTest{has(".attn.w1v.weight")}, RoleV},
	{[]nameTest{has(".attn.w2v.weight")}, RoleV},
	{[]nameTest{has(".add_v_proj.weight")}, RoleV},
	{[]nameTest{has("_attn.v_proj.weight")}, RoleV},
	{[]nameTest{has("attn_qkv.weight")}, RoleQKV},
	{[]nameTest{has("attn.qkv.weight")}, RoleQKV},
	{[]nameTest{has("attention.qkv.weight")}, RoleQKV},
	{[]nameTest{has("ffn_down")}, RoleDown},
	{[]nameTest{has("experts."), has(".w2.weight")}, RoleDown},
	{[]nameTest{has(".ffn.2.weight")}, RoleDown},
	{[]nameTest{has(".ff.net.2.weight")}, RoleDown},
	{[]nameTest{has(".mlp.layer2.weight")}, RoleDown},
	{[]nameTest{has(".adaln_modulation_mlp.2.weight")}, RoleDown},
	{[]nameTest{has(".feed_forward.w2.weight")}, RoleDown},
	{[]nameTest{has(".img_mlp.net.2.weight")}, RoleDown},
	{[]nameTest{has(".txt_mlp.net.2.weight")}, RoleDown},
}

func imageRole(name string) Role {
	for _, r := range imageRoles {
		if !slices.ContainsFunc(r.all, func(t nameTest) bool { return !t.match(name) }) {
			return r.role
		}
	}
	return RoleOther
}

// edge holds for tensors of the first and the last block, where the architecture has such a rule.
var edge = cond{"first or last block", func(s *site) bool {
	m := diffusion.ByName(s.traits.arch)
	return m != nil && m.Edges.Match(s.name)
}}

// edges is the type of the first and the last block, whatever the other rules give.
func edges(t gguf.Type) []rule { return []rule{use(roleAny, t, edge)} }

// imageRules has the recipes for image models. Types that the rules do not name are the recipe's.
var imageRules = map[string]ruleset{
	"Q2_K": {first: []rule{use(RoleV, gguf.TypeQ3_K)}, amend: edges(gguf.TypeQ4_K)},
	// needs an importance matrix, as elsewhere
	"Q2_K_S": {},
	"Q3_K_S": {amend: edges(gguf.TypeQ4_K)},
	"Q3_K_M": {first: []rule{use(RoleV, gguf.TypeQ5_K, leading(2)), use(RoleV|RoleQKV|RoleDown, gguf.TypeQ4_K)},
		amend: edges(gguf.TypeQ4_K)},
	"Q3_K_L": {first: []rule{use(RoleV|RoleDown, gguf.TypeQ5_K), use(RoleQKV, gguf.TypeQ4_K)},
		amend: edges(gguf.TypeQ4_K)},
	"IQ3_XS": {},
	"Q4_0":   {first: []rule{use(RoleDown, gguf.TypeQ4_1)}},
	"Q4_1":   {},
	"Q4_K_S": {first: []rule{use(RoleV, gguf.TypeQ5_K, leading(4)), use(RoleDown, gguf.TypeQ5_K)}},
	"Q4_K_M": {first: []rule{use(RoleV|RoleDown, gguf.TypeQ6_K), use(RoleQKV, gguf.TypeQ5_K)},
		amend: edges(gguf.TypeQ5_K)},
	"Q5_0":   {first: []rule{use(RoleDown, gguf.TypeQ5_1)}},
	"Q5_1":   {},
	"Q5_K_S": {},
	"Q5_K_M": {first: []rule{use(RoleV|RoleQKV|RoleDown, gguf.TypeQ6_K)}, amend: edges(gguf.TypeQ6_K)},
	"Q6_K":   {},
	"Q8_0":   {},
	"TQ1_0":  {},
	"TQ2_0":  {},
	"F16":    {},
	"BF16":   {},
	"F32":    {},
}

// ImageRecipes returns the recipes that image models can have, in the order of Recipes.
func ImageRecipes() (list []*Recipe) {
	for _, r := range Recipes() {
		if _, ok := imageRules[r.Name]; ok || r.Copy {
			list = append(list, r)
		}
	}
	return list
}

// forImage returns the recipe with the rules of image models. Recipes without such rules give an error of kind
// fault.Unsupported.
func (r *Recipe) forImage(m *diffusion.Model) (*Recipe, error) {
	if r.Copy {
		return r, nil
	}
	rules, ok := imageRules[r.Name]
	if !ok {
		var names []string
		for _, r := range ImageRecipes() {
			names = append(names, r.Name)
		}
		return nil, fault.Errorf(fault.Unsupported, "recipe %s has no rules for image and video models (%s): want one of %s",
			r.Name, m.Name, strings.Join(names, ", "))
	}
	other := *r
	other.rules = rules
	return &other, nil
}

// imageKeep lists weights that no image model has converted, besides those of its architecture.
var imageKeep = []nameTest{
	has("_norm.weight"), has("ffn_gate_inp.weight"), has("attn_rel_b.weight"), has("ssm_conv1d.weight"),
	has("time_mix_first.weight"), has("time_mix_w1.weight"), has("time_mix_w2.weight"),
}

// keptImage returns why the tensor of an image model is never converted, "" if it may be.
func keptImage(m *diffusion.Model, name string, ne []int64) string {
	if n := len(withoutOnes(ne, 1)); n != 2 || gguf.Rows(ne)*gguf.RowLen(ne) == 0 {
		return fmt.Sprintf("%d-D", n)
	}
	if !strings.HasSuffix(name, "weight") {
		return "not a weight"
	}
	for _, t := range imageKeep {
		if t.match(name) {
			return "name holds " + t.text
		}
	}
	if m.Keep.Match(name) {
		return "kept in " + m.Name
	}
	return ""
}

// withoutOnes returns dimensions without ones at the end beyond n.
func withoutOnes(ne []int64, n int) []int64 {
	for len(ne) > n && ne[len(ne)-1] == 1 {
		ne = ne[:len(ne)-1]
	}
	return ne
}

// imageDims returns the dimensions of a tensor in the output: without ones at the end, but for tensors whose number of
// dimensions loaders compare (diffusion.Model.Dims). Those of 5 dimensions pass the reference by, and scalars are what
// they are.
func imageDims(m *diffusion.Model, name string, ne []int64) []int64 {
	if len(ne) == 0 || len(ne) > gguf.MaxDims {
		return ne
	}
	least := m.MinDims(name)
	ne = slices.Clone(withoutOnes(ne, max(least, 1)))
	for len(ne) < least {
		ne = append(ne, 1)
	}
	return ne
}

// misnamed are parts of names in checkpoints whose diffusion model has other names in files that loaders take.
var misnamed = []string{"model.diffusion_model.", "first_stage_model.", "single_transformer_blocks.",
	"joint_transformer_blocks."}

// checkImageName returns an error of kind fault.Unsupported if a weight has the name of another layout than the
// architecture's files.
func checkImageName(m *diffusion.Model, t *model.Tensor, name string) error {
	for _, part := range misnamed {
		if strings.Contains(name, part) {
			return &UnsupportedError{name, t.Type, fmt.Sprintf(
				"the name holds %q: loaders of %s files want the diffusion model alone, under its own names", part, m.Name)}
		}
	}
	return nil
}
