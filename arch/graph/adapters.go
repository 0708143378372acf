package graph

// Adapters are matrices of low rank that add to the projections of a model.
type Adapters interface{ adapters() }

// TokenAdapters are adapters.count adapters that control tokens of the text choose (Granite Switch). Projection W of a
// layer computes W·x + B_a·(A_a·x), with matrix a of the stacks NAME.lora_a and NAME.lora_b: attn_q, attn_k, attn_v,
// attn_output, ffn_gate, ffn_up and ffn_down have such stacks. a is 1 plus the place of the control token in
// adapters.token_ids_activate, 0 before the first one: the output of a causal attention head, rounded to an integer,
// whose query is 1, and whose keys and values are adapters.router_gain and 1 plus the place for control tokens, minus
// adapters.router_gain and 0 for others. The embedding of a control token is that of the token in
// adapters.token_ids_substitute.
type TokenAdapters struct{}

func (TokenAdapters) adapters() {}

const (
	adapterCount Num = "@adapters.count"
	adapterRank  Num = "@adapters.lora_rank"
)

func (TokenAdapters) asks() []Num {
	return []Num{adapterCount, adapterRank, "@adapters.router_gain", "#adapters.token_ids_activate",
		"#adapters.token_ids_substitute", "n_ff"}
}

// adapters declares what adapters need in the current layer.
func (d *Decl) adapters(a Adapters) {
	switch a.(type) {
	case nil:
		return
	case TokenAdapters:
	default:
		d.unknown("kind of adapters", a)
		return
	}
	d.used, d.lacked = nil, nil
	n, rank := d.Size(adapterCount), d.Size(adapterRank)
	if n = add(n, 1); rank < 1 {
		d.contradiction("adapters of rank 0")
		return
	}
	key, value := d.Size("n_embd_head_k"), d.Size("n_embd_head_v")
	if d.layer == 0 {
		d.keep(Cache{Keys: key, Vals: value})
	}
	embd, ff, heads, kv := d.Size("n_embd"), d.Size("n_ff"), d.Size("n_head"), d.Size("n_head_kv")
	for _, p := range []struct {
		name    string
		in, out int64
	}{
		{"attn_q", embd, mul(heads, key)}, {"attn_k", embd, mul(kv, key)}, {"attn_v", embd, mul(kv, value)},
		{"attn_output", mul(heads, value), embd}, {"ffn_gate", embd, ff}, {"ffn_up", embd, ff}, {"ffn_down", ff, embd},
	} {
		d.exact(Yes, p.name+".lora_a", Other, p.in, rank, n)
		d.exact(Yes, p.name+".lora_b", Other, rank, p.out, n)
	}
}
