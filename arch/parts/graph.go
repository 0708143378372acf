package parts

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/table"
)

// What graphs of several architectures have in common: values, which nobody changes, and functions that arrange parts.

// Decoder is a language model of pre-norm layers.
func Decoder(norm graph.NormKind, mixer, ffn graph.Part) *graph.Model {
	return &graph.Model{Norm: norm, Layer: PreNorm(mixer, ffn), Final: OutputNorm, Head: graph.LM{}}
}

// PreNorm is x + mixer(norm(x)), then x + ffn(norm(x)).
func PreNorm(mixer, ffn graph.Part) []graph.Step { return PreNormAs("ffn_norm", mixer, ffn) }

// PreNormAs is PreNorm for files that have the norm before the FFN under another name.
func PreNormAs(ffnNorm string, mixer, ffn graph.Part) []graph.Step {
	return []graph.Step{
		graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: mixer},
		graph.Residual{Pre: graph.Norm{Name: ffnNorm}, Part: ffn},
	}
}

// Sandwich is PreNorm with a norm of each part's output, too.
func Sandwich(mixer, ffn graph.Part) []graph.Step {
	return []graph.Step{
		graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: mixer,
			Post: graph.Norm{Name: "post_attention_norm"}},
		graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: ffn, Post: graph.Norm{Name: "post_ffw_norm"}},
	}
}

// OutputNormOnly is x + norm(mixer(x)), then x + norm(ffn(x)), the order of OLMo 2.
func OutputNormOnly(mixer, ffn graph.Part) []graph.Step {
	return []graph.Step{
		graph.Residual{Part: mixer, Post: graph.Norm{Name: "post_attention_norm"}},
		graph.Residual{Part: ffn, Post: graph.Norm{Name: "post_ffw_norm"}},
	}
}

// PostLN is norm(x + mixer(x)), then norm(x + ffn(x)), the order of BERT.
func PostLN(mixer, ffn graph.Part) []graph.Step {
	return []graph.Step{
		graph.Residual{Part: mixer, Sum: graph.Norm{Name: "attn_output_norm"}},
		graph.Residual{Part: ffn, Sum: graph.Norm{Name: "layer_output_norm"}},
	}
}

// Parallel is x + mixer(norm(x)) + ffn(norm(x)), with norms of these names, which may be the same.
func Parallel(attnNorm string, mixer graph.Part, ffnNorm string, ffn graph.Part) graph.Step {
	return graph.Parallel{
		{Pre: graph.Norm{Name: attnNorm}, Part: mixer},
		{Pre: graph.Norm{Name: ffnNorm}, Part: ffn},
	}
}

// Scaled returns steps whose residual updates are multiplied by a number.
func Scaled(by graph.Num, steps []graph.Step) []graph.Step {
	scaled := make([]graph.Step, len(steps))
	for i, s := range steps {
		if r, ok := s.(graph.Residual); ok {
			r.Scale = by
			s = r
		}
		scaled[i] = s
	}
	return scaled
}

// GQA is attention over the context with these steps.
func GQA(steps ...graph.HeadStep) graph.Attention { return graph.Attention{Steps: steps} }

// Bidirectional is GQA without a causal mask.
func Bidirectional(steps ...graph.HeadStep) graph.Attention {
	return graph.Attention{Steps: steps, Sees: graph.Both}
}

// LocalGlobal is one mixer in the sliding-window layers, another in the others.
func LocalGlobal(in graph.Layers, local, global graph.Part) graph.Choose {
	return graph.Choose{{In: in, Then: local}, {In: graph.Every{}, Then: global}}
}

// RecurrentOr is one mixer in the recurrent layers, another in the others.
func RecurrentOr(recurrent, other graph.Part) graph.Choose {
	return graph.Choose{{In: graph.Recurrent{}, Then: recurrent}, {In: graph.Every{}, Then: other}}
}

// GatedQueryAttention is attention with gates next to the queries, as in Qwen3-Next.
var GatedQueryAttention = graph.Attention{QKV: graph.GatedQueries{}, Steps: []graph.HeadStep{MayQKNorm, NeoX}}

// Window is a sliding window of attention.sliding_window tokens.
var Window = graph.Window{Tokens: "n_swa"}

// RoPE, by its pairs of values. Local RoPE is for sliding-window layers of models whose base may differ there: the base
// is rope.freq_base_swa, else that of the other layers. Unscaled is without rope.scaling; Default is also without the
// base of the other layers.
var (
	NeoX              = graph.RoPE{}
	Interleaved       = graph.RoPE{Pairs: graph.Interleaved}
	LocalNeoX         = graph.RoPE{Base: localBase}
	LocalInterleaved  = graph.RoPE{Pairs: graph.Interleaved, Base: localBase}
	UnscaledLocalNeoX = graph.RoPE{Base: localBase, Scaling: graph.NoScale}
	DefaultLocalNeoX  = graph.RoPE{Base: "@rope.freq_base_swa or 10000", Scaling: graph.NoScale}
)

const localBase graph.Num = "@rope.freq_base_swa or @rope.freq_base or 10000"

// QKNorm normalizes queries and keys; MayQKNorm in files that have the weights.
var (
	QKNorm    = graph.QKNorm{}
	MayQKNorm = graph.QKNorm{May: true}
)

// KeyClamp limits queries, keys and values to ±attention.clamp_kqv.
var KeyClamp = graph.Clamp{By: "@attention.clamp_kqv or 0"}

// ALiBi has the usual largest bias, KeyALiBi that of attention.max_alibi_bias, or no ALiBi in files without the key.
var (
	ALiBi    = []graph.ScoreStep{graph.ALiBi{Max: "8"}}
	KeyALiBi = []graph.ScoreStep{graph.ALiBi{Max: "@attention.max_alibi_bias or 0"}}
)

// KeyTemperature is attention temperature in files with keys for it. In float32: 0 where a key is missing.
var KeyTemperature = graph.Temperature{
	Scale: "f32(@attention.temperature_scale or 0)",
	Times: "f32(f32(pos) / f32(@attention.temperature_length or 0))",
}

// Feed-forward networks, with and without a gate.
var (
	SwiGLU   = graph.FFN{Act: graph.SiLU}
	GeGLU    = graph.FFN{Act: graph.GELU}
	GELUMLP  = graph.FFN{Act: graph.GELU, Gate: graph.NoGate}
	ReLU2MLP = graph.FFN{Act: graph.ReLU2, Gate: graph.NoGate}
)

// Sparse is experts in layers that have a router, a dense network in the others.
func Sparse(experts graph.MoE, dense graph.FFN) graph.Choose {
	return graph.Choose{{In: graph.Has("ffn_gate_inp"), Then: experts}, {In: graph.Every{}, Then: dense}}
}

// Experts are experts of SwiGLU.
func Experts(r graph.Router, s graph.Shared) graph.MoE {
	return graph.MoE{Router: r, Experts: SwiGLU, Shared: s}
}

// RouterKeys are the keys by which files choose the scores of a router and the weights of experts.
var RouterKeys = []string{"expert_gating_func", "expert_weights_norm", "expert_weights_scale"}

// Sizes of experts whose keys are optional.
const (
	SharedWidth         = "@expert_feed_forward_length or n_ff / @expert_used_count" // n_ff_exp
	SharedExpertOrWhole = "@expert_shared_feed_forward_length or n_ff"               // n_ff_shexp
)

// Routers with softmax scores: TopK normalizes the weights of the chosen experts, Bias has a correction bias, Groups
// chooses in the best groups only.
var (
	Router         = graph.Router{Score: graph.Softmax}
	RouterTopK     = graph.Router{Score: graph.Softmax, TopKNorm: true}
	RouterBias     = graph.Router{Score: graph.Softmax, Bias: true}
	RouterBiasTopK = graph.Router{Score: graph.Softmax, Bias: true, TopKNorm: true}
	RouterGroups   = graph.Router{Score: graph.Softmax, Bias: true, Groups: true}
)

// LogitSoftCap caps logits by final_logit_softcapping, in files with the key.
const LogitSoftCap graph.Num = "@final_logit_softcapping or 0"

// OutputNorm is the usual last norm.
var OutputNorm = []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "output_norm"}}}

// EmbeddingNorm is the norm of embeddings.
var EmbeddingNorm = graph.Norm{Name: "token_embd_norm"}

// ScaledEmbedding is multiplied by the root of its length, as in Gemma.
var ScaledEmbedding = graph.Embedding{Scale: "f32(sqrt(n_embd))"}

// EncoderRuntime: the runtime keeps nothing of a text and computes no logits.
var EncoderRuntime = []graph.Quirk{graph.NoCache{}, graph.NoLogits{}}

// LlamaGraph is Llama 1 to 3, Mistral and Mixtral.
var LlamaGraph = &graph.Model{
	Folds: true,
	Norm:  graph.RMS, Final: OutputNorm, Head: graph.LM{},
	Layer: PreNorm(GQA(Interleaved), Sparse(Experts(RouterTopK, graph.NoShared), SwiGLU)),
}

// Mistral3Graph is LlamaGraph with attention temperature, of which YaRN's original context is the length.
var Mistral3Graph = &graph.Model{
	Reads: []string{"rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier"},
	Norm:  graph.RMS, Final: OutputNorm, Head: graph.LM{},
	Layer: PreNorm(GQA(Interleaved, graph.Temperature{
		Scale: KeyTemperature.Scale,
		Times: "f32(f32(pos) / f32(@rope.scaling.original_context_length or @context_length or 0))",
	}), Sparse(Experts(RouterTopK, graph.NoShared), SwiGLU)),
	Unread: []string{"attention.temperature_length"},
}

// DeepSeek2Graph is DeepSeek V2, V3 and R1, Kimi K2, GLM-4.7 Flash and Mistral Large 3.
var DeepSeek2Graph = DeepSeekMLA(graph.MScaleEq)

// DeepSeekMLA is DeepSeek's attention and experts, with YaRN's mscale by that rule.
func DeepSeekMLA(s graph.Scaling) *graph.Model {
	return &graph.Model{
		Reads: slices.Concat(RouterKeys, []string{"rope.scaling.yarn_log_multiplier"}),
		Norm:  graph.RMS, Final: OutputNorm, Head: graph.LM{},
		Layer: PreNorm(
			graph.MLA{Steps: []graph.HeadStep{KeyTemperature, graph.RoPE{Pairs: graph.Interleaved, Scaling: s}}},
			Sparse(Experts(RouterGroups, graph.MayShared), SwiGLU)),
		Unread: MLAUnread,
	}
}

// MLAUnread are the keys that MLA ignores: files have one KV head, that of the compressed vectors.
var MLAUnread = []string{table.KeyHeadCountKV}
