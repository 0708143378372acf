package graph

import (
	"slices"
	"strings"
	"testing"
)

// looped returns a model of layers with attention and a loop.
func looped(l Loop) *Model {
	m := mixer(Attention{})
	m.Loop = l
	return m
}

func TestLoop(t *testing.T) {
	hrm := small.with(values{"block_count": u32(12), "hrm.layers_per_stack": u32(2), "hrm.h_cycles": u32(2),
		"hrm.l_cycles": u32(2)})
	for _, c := range []struct {
		name   string
		loop   Loop
		kv     values
		layers int
		order  []int
		want   string // required tensors outside of layers
	}{
		{"none", nil, small, 2, []int{0, 1}, "token_embd: 64 x 10\noutput_norm: 64\n"},
		{"repeated", Repeat{Times: "@num_loops or 1", Between: []Step{Normalize{norm("loop_norm")}}},
			small.with(values{"num_loops": u32(3)}), 2, []int{0, 1, 0, 1, 0, 1},
			"token_embd: 64 x 10\noutput_norm: 64\nloop_norm: 64\n"},
		{"hierarchy", HRM{}, hrm, 4, []int{0, 1, 0, 1, 2, 3, 0, 1, 0, 1, 2, 3},
			"token_embd: 64 x 10\noutput_norm: 64\nhrm.z_l_init: 64\n"},
	} {
		d := declare(t, looped(c.loop), c.kv.file())
		if d.Layers() != c.layers || !slices.Equal(d.Order(), c.order) {
			t.Errorf("%s: %d layers in the order %v, want %d in %v", c.name, d.Layers(), d.Order(), c.layers, c.order)
		}
		same(t, c.name, required(d, ""), c.want)
		var caches []int
		for _, x := range d.Caches() {
			caches = append(caches, x.Layer)
		}
		if len(caches) != len(c.order) || !slices.IsSorted(caches) || caches[len(caches)-1] != len(c.order)-1 {
			t.Errorf("%s: caches of %v, want one each time", c.name, caches)
		}
	}
	for _, c := range []struct {
		loop Loop
		kv   values
		want string
	}{
		{HRM{}, hrm.with(values{"block_count": u32(11)}), `12 layers run, want "made.block_count": 11`},
		{Repeat{Times: "@num_loops"}, small.with(values{"num_loops": u32(0)}), "layers run 0 times"},
		{Repeat{Times: "@num_loops"}, small.with(values{"num_loops": u32(1 << 20)}), "layers run: llama.cpp runs at most"},
		{Repeat{Times: "@num_loops"}, small, "num_loops"},
	} {
		if _, err := Declare(looped(c.loop), c.kv.file()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.loop, err, c.want)
		}
	}
}

func TestAltUp(t *testing.T) {
	m := mixer(FFN{Act: SparseGELU{By: "1.5"}})
	m.Streams = AltUp{Act: GELU}
	kv := small.with(values{"altup.num_inputs": u32(3), "embedding_length_per_layer_input": u32(8)})
	d := declare(t, m, kv.file())
	same(t, "outside of layers", required(d, ""), `
token_embd: 64 x 10
output_norm: 64
altup_proj: 64 x 64 x 2
altup_unembd_proj: 64 x 64 x 2
per_layer_token_embd: 16 x 10
per_layer_model_proj: 64 x 16
per_layer_proj_norm: 8
`)
	same(t, "layer 1", required(d, "blk.1."), `
altup_router: 64 x 3
altup_router_norm: 64
altup_predict_coef: 3 x 9
altup_correct_coef: 3 x 3
altup_correct_scale: 64
inp_gate: 64 x 8
proj: 8 x 64
post_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
	for _, bad := range []values{{"altup.num_inputs": u32(1)}, {"altup.active_idx": u32(1)}} {
		if _, err := Declare(m, kv.with(bad).file()); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestHyperConnections(t *testing.T) {
	m := decoder(Connected{Name: "ffn", Residual: Residual{Pre: norm("ffn_norm"), Part: swiGLU}})
	m.Streams = HyperConnections{}
	kv := small.with(values{"hyper_connection.count": u32(3), "hyper_connection.epsilon": f32(1e-6),
		"hyper_connection.magnitude": f32(2)})
	d := declare(t, m, kv.file())
	same(t, "outside of layers", required(d, ""), `
token_embd: 64 x 10
output_norm: 64
output_hc_fn: 192 x 3
output_hc_base: 3
output_hc_scale: 1
`)
	same(t, "layer 1", required(d, "blk.1."), `
hc_ffn_fn: 192 x 6
hc_ffn_base: 6
hc_ffn_scale: 2
ffn_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
	if _, err := Declare(m, kv.with(values{"hyper_connection.count": u32(0)}).file()); err == nil {
		t.Error("no streams: no error")
	}
	m.Layer = []Step{Mixed{Name: "ffn", Residual: Residual{Pre: norm("ffn_norm"), Part: swiGLU}}}
	kv = kv.with(values{"hyper_connection.sinkhorn_iterations": u32(20)})
	same(t, "layer 1 of mixed streams", required(declare(t, m, kv.file()), "blk.1."), `
hc_ffn_fn: 192 x 15
hc_ffn_base: 15
hc_ffn_scale: 3
ffn_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
}

// Streams that are mixed have more factors, and those that become their mean no tensors of their own.
func TestMixedStreams(t *testing.T) {
	m := decoder(Mixed{Name: "ffn", Residual: Residual{Pre: norm("ffn_norm"), Part: swiGLU}})
	m.Streams = HyperConnections{Mean: true}
	kv := small.with(values{"hyper_connection.count": u32(3), "hyper_connection.epsilon": f32(1e-6),
		"hyper_connection.sinkhorn_iterations": u32(20)})
	d := declare(t, m, kv.file())
	same(t, "outside of layers", required(d, ""), `
token_embd: 64 x 10
output_norm: 64
`)
	same(t, "layer 1", required(d, "blk.1."), `
hc_ffn_fn: 192 x 15
hc_ffn_base: 15
hc_ffn_scale: 3
ffn_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
}

func TestAttentionResiduals(t *testing.T) {
	m := decoder(Attended{Name: "ffn", Keeps: true, Residual: Residual{Pre: norm("ffn_norm"),
		Part: FFN{Act: SiTU{Beta: "@activation.situ_beta", Linear: "@activation.situ_linear_beta"}}}})
	m.Streams = AttentionResiduals{}
	kv := small.with(values{"attn_res.block_size": u32(2), "activation.situ_beta": f32(4),
		"activation.situ_linear_beta": f32(25)})
	d := declare(t, m, kv.file())
	same(t, "outside of layers", required(d, ""), `
token_embd: 64 x 10
output_norm: 64
output_res_score: 64
`)
	same(t, "layer 1", required(d, "blk.1."), `
ffn_res_score: 64
ffn_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
	without := kv.with(nil)
	delete(without, "attn_res.block_size")
	if _, err := Declare(m, without.file()); err == nil {
		t.Error("no length of blocks: no error")
	}
	if _, err := Declare(m, kv.with(values{"attn_res.block_size": u32(0)}).file()); err == nil {
		t.Error("blocks of no layers: no error")
	}
}

// Tokens that are never the next one are in the vocabulary.
func TestNever(t *testing.T) {
	m := mixer(Attention{})
	for end, want := range map[int]bool{0: true, 10: true, 11: false} {
		m.Head = LM{Never: TokenRange{End: end}}
		if _, err := Declare(m, small.file()); (err == nil) != want {
			t.Errorf("tokens up to %d of 10: %v", end, err)
		}
	}
}

// Steps that read what was before, and norms of groups.
func TestInputs(t *testing.T) {
	m := decoder(Residual{Part: Attention{}}, FromUpdate{Residual{Part: swiGLU, Post: norm("ffn_norm")}})
	same(t, "layer 0", required(declare(t, m, small.file()), "blk.0."), `
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_output: 64 x 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
ffn_norm: 64
`)
	m = decoder(FromInput{Residual{Pre: norm("ffn_norm_exps"), Part: swiGLU}}, AddEmbedding{Tensor: "layer_output_scale"})
	m.Norm = NormKind{Centered: true, Eps: LayerNorm.Eps, OrRMS: RMS.Eps, Groups: "@attention.group_norm_groups or 1"}
	d := declare(t, m, small.file())
	same(t, "layer 0", required(d, "blk.0."), `
ffn_norm_exps: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
layer_output_scale: 1
`)
	for n, want := range map[uint32]bool{1: true, 4: true, 0: false, 3: false} {
		_, err := Declare(m, small.with(values{"attention.group_norm_groups": u32(n)}).file())
		if (err == nil) != want {
			t.Errorf("%d groups: %v", n, err)
		}
	}
}
