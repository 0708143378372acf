package memory

import (
	"ggforge/arch/graph"
)

// undeclared is an architecture without a graph, as far as it is unlike a model of pre-norm layers with the parts that
// their tensors show.
type undeclared struct {
	name    string
	windows graph.Layers // the layers with a window, nil for none
	runtime []graph.Quirk
	// caches returns what a layer keeps of a text instead of c; nil for c.
	caches func(l layer, c []graph.Cache) []graph.Cache
}

// layer is a layer of a file.
type layer struct {
	*graph.Scope
	file *graph.File
}

// undeclaredRows has the architectures; all others have nothing of their own.
//
// Source: the sizes of caches that the runtime of llama.cpp 0.7.0 prints.
var undeclaredRows = []undeclared{
	{name: "clef", runtime: []graph.Quirk{graph.NoCache{}}},
	{name: "dflash", windows: graph.Sliding{}},
	{name: "gemma4-assistant", windows: graph.Sliding{}},
	{name: "wavtokenizer-dec", runtime: []graph.Quirk{graph.NoCache{}}},
}

// lookup returns the row of an architecture without a graph.
func lookup(arch string) undeclared {
	for _, u := range undeclaredRows {
		if u.name == arch {
			return u
		}
	}
	return undeclared{name: arch}
}

// model returns a graph: what the tensors of each layer show.
func (u undeclared) model() *graph.Model {
	rope := []graph.HeadStep{graph.QKNorm{May: true}, graph.RoPE{}}
	attention := graph.Choose{{In: graph.Every{}, Then: graph.Attention{Steps: rope}}}
	dims := graph.Dims{}
	if u.windows != nil {
		local := graph.Attention{Steps: rope, Window: graph.Window{Tokens: "n_swa"}}
		attention = append(graph.Choose{{In: u.windows, Then: local}}, attention...)
		if s, ok := u.windows.(graph.Sliding); ok && s.N == 0 {
			for _, d := range []string{"key", "value"} {
				all := graph.Common["n_embd_head_"+d[:1]]
				dims["n_embd_head_"+d[:1]] = "if(@attention.sliding_window_pattern != 0, @attention." + graph.Num(d) +
					"_length_swa or " + all + ", " + all + ")"
			}
		}
	}
	mixer := append(graph.Choose{
		{In: graph.Has("shortconv.conv"), Then: graph.ShortConv{}},
		{In: graph.Has("ssm_conv1d_q"), Then: graph.KDA{}},
		{In: graph.Has("ssm_beta"), Then: graph.GatedDeltaNet{}},
		{In: graph.Has("ssm_ba"), Then: graph.GatedDeltaNet{}},
		{In: graph.Has("ssm_in"), Then: graph.Mamba1{}},
		{In: graph.Not{Layers: graph.Where("n_head != 0")}, Then: graph.Nothing{}},
		{In: graph.Has("attn_k_b"), Then: graph.MLA{Steps: rope, Scores: []graph.ScoreStep{
			graph.OnScores{In: graph.Has("indexer.attn_q_b"), Steps: []graph.ScoreStep{graph.Indexer{Eps: "0"}}},
			graph.OnScores{In: graph.Not{Layers: graph.Has("indexer.attn_q_b")},
				Steps: []graph.ScoreStep{graph.SharedIndexer{}}},
		}}},
	}, attention...)
	dense := graph.FFN{Act: graph.SiLU}
	experts := graph.MoE{Router: graph.Router{Score: graph.Softmax, Bias: true, Groups: true},
		Experts: dense, Shared: graph.MayShared}
	ffn := graph.Choose{
		{In: graph.Not{Layers: graph.Has("ffn_down_exps")}, Then: dense},
		{In: graph.Has("ffn_down"), Then: graph.Sum{experts, dense}},
		{In: graph.Every{}, Then: experts},
	}
	name := func(s string) graph.Norm { return graph.Norm{Name: s} }
	return &graph.Model{
		Dims: dims, Norm: graph.RMS, Reads: graph.ByName, Runtime: u.runtime,
		Layer: []graph.Step{
			graph.ChooseStep{
				{In: graph.Has("attn_post_norm"), Steps: []graph.Step{
					graph.Residual{Pre: name("attn_norm"), Part: mixer, Post: name("attn_post_norm")}}},
				{In: graph.Not{Layers: graph.Has("ffn_norm")}, Steps: []graph.Step{
					graph.Residual{Pre: name("attn_norm"), Part: mixer}}},
				{In: graph.Has("post_attention_norm"), Steps: []graph.Step{
					graph.Residual{Pre: name("attn_norm"), Part: mixer, Post: name("post_attention_norm")}}},
				{In: graph.Every{}, Steps: []graph.Step{graph.Residual{Pre: name("attn_norm"), Part: mixer}}},
			},
			graph.ChooseStep{
				{In: graph.Has("post_ffw_norm"), Steps: []graph.Step{
					graph.Residual{Pre: name("ffn_norm"), Part: ffn, Post: name("post_ffw_norm")}}},
				{In: graph.Every{}, Steps: []graph.Step{graph.Residual{Pre: name("ffn_norm"), Part: ffn}}},
			},
			graph.PerLayerEmbedding{Act: graph.GELU},
		},
		Final: []graph.Step{graph.Normalize{Norm: name("output_norm")}},
		Head:  graph.LM{},
	}
}
