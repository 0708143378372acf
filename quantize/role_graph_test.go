package quantize

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/mutate"
)

// roles are the roles of this package for those that parts of graphs declare. Norms, routers and kernels are not in
// roleTable.
var roles = map[graph.Role]Role{
	graph.Other: RoleOther, graph.EmbeddingRole: RoleEmbd, graph.OutputRole: RoleOutput, graph.NormRole: RoleOther,
	graph.QueryRole: RoleQ, graph.KeyRole: RoleK, graph.ValueRole: RoleV, graph.QKVRole: RoleQKV,
	graph.AttnOutRole: RoleAttnOut, graph.UpRole: RoleUp, graph.GateRole: RoleGate, graph.DownRole: RoleDown,
	graph.RouterRole: RoleOther, graph.KernelRole: RoleOther,
}

// exception has the tensors in which names and declared roles differ for one reason.
type exception struct {
	tensors string
	differ  string // what follows the name of a tensor in a finding
	reason  string
}

const (
	noRow = "roleTable has the names of the reference, which knows neither compressed queries, keys and values nor " +
		"recurrent mixers: their types are the recipe's default"
	storedByConverter = "the reference's converter stores it in the output type, its quantizer does not convert it"
)

var exceptions = []exception{
	{"attn_q_a attn_q_b", "role attn_q, by its name other", noRow},
	{"attn_k_b attn_kv attn_kv_a_mqa attn_compressor_kv indexer_compressor_kv", "role attn_k, by its name other", noRow},
	{"attn_v_b", "role attn_v, by its name other", noRow},
	{"attn_kv_b", "role attn_v, by its name attn_kv_b", "values for some rules only (roleVV)"},
	{"time_mix_receptance", "role attn_q, by its name other", noRow},
	{"time_mix_key", "role attn_k, by its name other", noRow},
	{"time_mix_value", "role attn_v, by its name other", noRow},
	{"shortconv.in_proj ssm_in", "role attn_qkv, by its name other", noRow},
	{"shortconv.out_proj ssm_out time_mix_output", "role attn_output, by its name other", noRow},
	{"attn_output_a attn_output_b", "role attn_output, by its name other", "the reference compares whole names"},
	{"hc_ffn_down", "role other, by its name ffn_down", "the reference looks for ffn_down in names"},
	{"hc_ffn_up", "role other, by its name ffn_up", "the reference looks for ffn_up in names"},
	{"ffn_gate_tid2eid", "role other, by its name ffn_gate", "the reference looks for ffn_gate in names; it is I32"},
	{"ffn_gate_tid2eid", "declared for F32, not kept by the converter", "it is I32 in checkpoints and stays so"},
	{"attn_compressor_ape indexer_compressor_ape ple_conv1d", "declared for F32, not kept by the converter",
		"the reference has no rule for it"},
	{"attn_compressor_ape indexer_compressor_ape ple_conv1d", "declared for F32, not kept by quantize",
		"the reference has no rule for it"},
	{"attn_o cross_attn_o", "role attn_output, by its name other", "T5's names, which the reference does not know"},
	{"channel_mix_key", "role ffn_up, by its name other", noRow},
	{"channel_mix_receptance time_mix_gate", "role ffn_gate, by its name other", noRow},
	{"channel_mix_value", "role ffn_down, by its name other", noRow},
	{"ffn_gate_up_exps", "role ffn_up, by its name ffn_gate", "the reference looks for ffn_gate in names"},
	{"ffn_gate_inp", "role other, by its name ffn_gate", "the reference looks for ffn_gate in names; it is F32 anyway"},
	{"nextn.embed_tokens", "role token_embd, by its name other", "the reference compares whole names"},
	{"nextn.shared_head_head", "role output, by its name other", "the reference compares whole names"},
	{"attn_v_exps", "role attn_v, by its name other", "the reference has no rule for experts of values"},
	{"attn_v_gate", "declared for F32, not kept by the converter", "the reference has no rule for experts of values"},
	{"attn_v_gate", "declared for F32, not kept by quantize", "the reference has no rule for experts of values"},
	{"indexer.attn_q_b", "role attn_q, by its name other", noRow},
	{"indexer.proj", "kept by the converter, not declared for F32",
		"the reference's converter stores it in F32, its quantizer converts it"},
	{"altup_proj altup_router altup_unembd_proj attn_rel_b cross_attn_rel_b indexer.k_proj indexer.q_proj laurel_l laurel_r " +
		"per_layer_model_proj time_mix_a1 time_mix_a2 time_mix_g1 time_mix_g2 time_mix_v1 time_mix_v2",
		"declared for F32, not kept by the converter", storedByConverter},
}

var (
	numberInName = regexp.MustCompile(`\.\d+\.`)
	layerStack   = regexp.MustCompile(`^(enc|dec)\.`)
)

// TestRolesOfGraphs compares the roles that this package finds by the names of tensors, and the tensors that it and the
// converter keep in F32, with the roles that graphs declare for every tensor of every made-up model. This package goes
// by names, as the reference does, and for any file; a difference needs a reason.
func TestRolesOfGraphs(t *testing.T) {
	found := map[string]string{}
	compare := func(x graph.Tensor) {
		kind := numberInName.ReplaceAllString(x.Name, ".")
		kind = strings.TrimSuffix(strings.TrimPrefix(layerStack.ReplaceAllString(kind, ""), "blk."), ".weight")
		if !strings.HasSuffix(x.Name, ".weight") || len(x.NE) < 2 {
			return // F32 whatever its name is
		}
		if got, want := roleOf(x.Name), roles[x.Role]; got != want {
			found[fmt.Sprintf("%s: role %v, by its name %v", kind, want, got)] = x.Name
		}
		f32 := x.Role == graph.NormRole || x.Role == graph.RouterRole || x.Role == graph.KernelRole
		for who, kept := range map[string]bool{
			"quantize":      keptName(x.Name) != "",
			"the converter": table.KeepF32(x.Name, x.NE),
		} {
			switch {
			case f32 && !kept:
				found[fmt.Sprintf("%s: declared for F32, not kept by %s", kind, who)] = x.Name
			case kept && !f32:
				found[fmt.Sprintf("%s: kept by %s, not declared for F32", kind, who)] = x.Name
			}
		}
	}
	mutate.EachModel(t, func(name string, m *model.Model) {
		g := arch.Graph(m.Architecture())
		if g == nil {
			return
		}
		d, err := graph.Declare(g, graph.NewFile(m.Metadata, func(yield func(*gguf.Tensor) bool) {
			for i := range m.Tensors {
				if !yield(&m.Tensors[i].Tensor) {
					return
				}
			}
		}))
		if err != nil {
			return
		}
		for _, x := range d.Tensors() {
			compare(x)
		}
		if drafts, err := d.Drafts(); err == nil {
			for _, x := range drafts.Tensors() {
				compare(x)
			}
		}
	})
	if !cpu.HasVectors {
		return
	}
	for _, e := range exceptions {
		for kind := range strings.FieldsSeq(e.tensors) {
			finding := kind + ": " + e.differ
			if found[finding] == "" {
				t.Errorf("exceptions has %q, but there is no difference", finding)
			}
			delete(found, finding)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s (%s)", f, found[f])
	}
}
