package eval

import (
	"math"

	"ggforge/eval/internal/window"
	"ggforge/internal/kernel/vecmath"
)

// Graph describes what an architecture computes beyond what its tensors and keys show. Everything that has a tensor or
// a key of its own (biases, QK-norms, further norms, experts, fused projections, scales) is read from the file. The
// zero value of a field is the usual case.
type Graph struct {
	Arch string
	// Mixer returns the token mixer of layer i; nil for attention with queries, keys and values.
	Mixer func(b *builder, i int) mixer
	// FFN sets an unusual feed-forward block of layer i and its norm; nil for a feed-forward network or experts.
	FFN func(b *builder, i int, l *layer)
	// TimeMixFirst: heads of RWKV 6 read the current token's k ⊗ v scaled by time_mix_first before it is added to the
	// state, and the channel mix has a gate.
	TimeMixFirst bool
	// OutputNorm is the name of the last norm; "" for output_norm.
	OutputNorm string
	// RoPE is how RoPE pairs the values of queries and keys.
	RoPE RoPE
	// MScaleEqualsAllDim: YaRN's mscale equals mscale_all_dim, which is rope.scaling.yarn_log_multiplier, unless that
	// is 1; the two cancel each other.
	MScaleEqualsAllDim bool
	// YarnLogMultiplierIsTenth: rope.scaling.yarn_log_multiplier is stored divided by 10.
	YarnLogMultiplierIsTenth bool
	// RotatesWholeHead: RoPE rotates the whole head, whatever rope.dimension_count is.
	RotatesWholeHead bool
	// InterleavedMRoPE: the sections of M-RoPE alternate along the pairs.
	InterleavedMRoPE bool
	// UsesRoPE reports whether layer i has RoPE; nil for all layers.
	UsesRoPE func(p *params, i int) bool
	// RoPEIfFinetuned: there is RoPE only if rope.scaling.finetuned is true.
	RoPEIfFinetuned bool
	// QKNormAfterRoPE: the QK-norm comes after RoPE.
	QKNormAfterRoPE bool
	// UnitNorm reports whether queries and keys of layer i have an RMS norm without weights; nil for none.
	UnitNorm func(p *params, i int) bool
	// AttentionOutputScale: the attention output is multiplied by attention.value_scale.
	AttentionOutputScale bool
	// AttentionTemperature returns the attention temperature, which scales queries by position; nil for none.
	AttentionTemperature func(k *keys, p *params) temperature
	// RoPEPattern: attention.rope_pattern lists the layers with RoPE.
	RoPEPattern bool
	// TemperatureWithoutRoPEOnly: the attention temperature is for layers without RoPE only.
	TemperatureWithoutRoPEOnly bool
	// Activation is that of the feed-forward network: of its gate if it has one.
	Activation vecmath.Function
	// FFNActivation returns the activation of layer i in place of Activation; nil for Activation.
	FFNActivation func(b *builder, i int) ffnActivation
	// ActivationFromKey: hidden_activation may name another activation.
	ActivationFromKey bool
	// HalvedFFNLength: feed_forward_length is twice the intermediate size.
	HalvedFFNLength bool
	// EmbeddingScale returns the factor of token embeddings; nil for embedding_scale, or 1.
	EmbeddingScale func(p *params) float64
	// AttentionScale returns the factor of attention scores; nil for attention.scale, or 1/√(length of a key).
	AttentionScale func(p *params) float64
	// LayerNorm: norms subtract the mean; otherwise they are RMS norms.
	LayerNorm bool
	// ZeroEpsilon: the epsilon of norms is 0, whatever the file has: llama.cpp does not read it.
	ZeroEpsilon bool
	// EpsilonOptional: the epsilon is 0 in files without the key.
	EpsilonOptional bool
	// FallbackEpsilon: RMS norms use attention.layer_norm_rms_epsilon, or in files without it
	// attention.layer_norm_epsilon, which is required in any case.
	FallbackEpsilon bool
	// NormWithoutWeights: norms have neither weights nor biases.
	NormWithoutWeights bool
	// ParallelResidual reports whether attention and feed-forward block read the same residual stream, in a layer with
	// these norms; nil for no. A layer without an FFN norm has one norm for both.
	ParallelResidual func(k *keys, l *layer) bool
	// OutputNormOnly: blocks read the residual stream without a norm, and their outputs are normalized.
	OutputNormOnly bool
	// PostLN: blocks read the residual stream without a norm, and the stream is normalized after each residual
	// addition. There is no norm after the last layer.
	PostLN bool
	// NoNormInFirstLayer: the attention of the first layer reads the embeddings without a norm.
	NoNormInFirstLayer bool
	// SWADefaultRoPE: sliding-window layers have a RoPE base of 10000 unless there is rope.freq_base_swa, and no RoPE
	// scaling.
	SWADefaultRoPE bool
	// Bidirectional: attention is not causal. Other architectures have attention.causal.
	Bidirectional bool
	// TensorPrefix comes before "blk." in the names of tensors.
	TensorPrefix string
	// IgnoresDecoder: tensors of a decoder (dec.*) are ignored.
	IgnoresDecoder bool
	// Classifier is the input of a classification, and its activation.
	Classifier classifierKind
	// UngatedActivation is the activation of feed-forward networks without a gate; nil for Activation.
	UngatedActivation *vecmath.Function
	// SWAUnscaledRoPE: sliding-window layers have no RoPE scaling.
	SWAUnscaledRoPE bool
	// SWAHeadSizes: sliding-window layers have head sizes and RoPE dimensions of their own and no rope_freqs, and
	// layers have per-layer embeddings and an output scale.
	SWAHeadSizes bool
	// ALiBiMaxBias returns the ALiBi bias of which slopes are made; nil for attention.max_alibi_bias, or none.
	ALiBiMaxBias func(p *params) float64
	// NormalizeTopK: the weights of the chosen experts are divided by their sum, in files without expert_weights_norm.
	NormalizeTopK bool
	// RouterScore is the expert_gating_func of files without the key; 0 for scoreSoftmax.
	RouterScore int
	// EarlyRouter: the router reads the residual stream before the layer, without a norm.
	EarlyRouter bool
	// GroupedRouting: experts are chosen in the best groups only.
	GroupedRouting bool
	// WeighInputs: the inputs of experts are multiplied by their weights, not the outputs.
	WeighInputs bool
	// Defaults sets scales and soft caps of files without keys for them; nil for scales of 1 and no caps.
	Defaults func(p *params)
	// MultiplyLogits: logits are multiplied by logit_scale, not divided by it.
	MultiplyLogits bool
	// FFNNorm is the name of the norm before the feed-forward block; "" for ffn_norm.
	FFNNorm string
	// IgnoredKeys are keys that do not change the result.
	IgnoredKeys []string
}

// graphs are the architectures that can be evaluated.
var graphs = []*Graph{
	{Arch: "llama", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "qwen2", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "qwen2moe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "qwen3", Classifier: classifierOfLast, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "qwen3moe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "gemma", RoPE: RoPENeoX, Activation: vecmath.GELUOf, EmbeddingScale: sqrtOfWidth},
	{Arch: "gemma2", Defaults: gemma2Caps, RoPE: RoPENeoX, Activation: vecmath.GELUOf, EmbeddingScale: sqrtOfWidth,
		AttentionScale: gemmaScale(46)},
	{Arch: "gemma3", RoPE: RoPENeoX, Activation: vecmath.GELUOf, EmbeddingScale: sqrtOfWidth,
		AttentionScale: gemmaScale(62),
		SWADefaultRoPE: true},
	{Arch: "phi2", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf, ParallelResidual: always},
	{Arch: "phi3", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, IgnoredKeys: []string{"attention.sliding_window"}},
	{Arch: "phimoe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, NormalizeTopK: true,
		IgnoredKeys: []string{"attention.sliding_window"}},
	{Arch: "granite", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf,
		IgnoredKeys:     append([]string{"deepstack_mapping", "expert_shared_feed_forward_length"}, ssmKeys...),
		RoPEIfFinetuned: true},
	{Arch: "granitemoe", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormalizeTopK: true, IgnoredKeys: ssmKeys,
		RoPEIfFinetuned: true},
	{Arch: "minicpm", Defaults: minicpmScales, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "olmo", LayerNorm: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormWithoutWeights: true},
	{Arch: "olmo2", SWAUnscaledRoPE: true, OutputNormOnly: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "olmoe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "smollm3", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf,
		UsesRoPE: func(_ *params, i int) bool { return i%4 != 3 }},
	{Arch: "glm4", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "glm4moe", RouterScore: scoreSigmoid, GroupedRouting: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf,
		FFNNorm: "post_attention_norm"},
	{Arch: "deepseek", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "deepseek2", Mixer: newMLA, MScaleEqualsAllDim: true, YarnLogMultiplierIsTenth: true,
		AttentionTemperature: temperatureFromKeys,
		GroupedRouting:       true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "command-r", LayerNorm: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, ParallelResidual: always,
		MultiplyLogits: true},
	{Arch: "cohere2", LayerNorm: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, ParallelResidual: always,
		MultiplyLogits: true,
		UsesRoPE:       isSWALayer},
	{Arch: "gptneox", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf,
		ParallelResidual: func(k *keys, _ *layer) bool { return k.Flag("use_parallel_residual", true) }},
	{Arch: "gpt2", LayerNorm: true, Activation: vecmath.GELUOf},
	{Arch: "falcon", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf, ParallelResidual: always},
	{Arch: "bloom", LayerNorm: true, Activation: vecmath.GELUOf, ALiBiMaxBias: func(*params) float64 { return 8 }},
	{Arch: "mpt", LayerNorm: true, Activation: vecmath.GELUOf},
	{Arch: "starcoder", LayerNorm: true, Activation: vecmath.GELUOf},
	{Arch: "starcoder2", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf},
	{Arch: "stablelm", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf,
		IgnoredKeys:      []string{"use_parallel_residual"},
		ParallelResidual: func(_ *keys, l *layer) bool { return l.ffnNorm == nil }},
	{Arch: "mamba", Mixer: newMamba, FFN: noFFN},
	{Arch: "mamba2", Mixer: newMamba2, FFN: noFFN},
	{Arch: "jamba", Mixer: chooseMixer(isRecurrent, newMamba, newAttention), Activation: vecmath.SiLUOf},
	{Arch: "granitehybrid", Mixer: chooseMixer(isRecurrent, newMamba2, newAttention), RoPE: RoPEInterleaved,
		Activation:    vecmath.SiLUOf,
		NormalizeTopK: true, RoPEIfFinetuned: true, IgnoredKeys: []string{"expert_shared_feed_forward_length"}},
	{Arch: "falcon-h1", Mixer: newAttentionAndMamba2, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "lfm2", Mixer: chooseMixer(isRecurrent, newShortConv, newAttention), OutputNorm: "token_embd_norm",
		RoPE:       RoPENeoX,
		Activation: vecmath.SiLUOf},
	{Arch: "lfm2moe", Mixer: chooseMixer(isRecurrent, newShortConv, newAttention), OutputNorm: "token_embd_norm",
		RoPE:       RoPENeoX,
		Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "qwen3next", Mixer: chooseMixer(isRecurrent, newDeltaNet(false), newGatedQueryAttention), RoPE: RoPENeoX,
		Activation: vecmath.SiLUOf, NormalizeTopK: true, FFNNorm: "post_attention_norm"},
	{Arch: "qwen35", Mixer: chooseMixer(isRecurrent, newDeltaNet(true), newGatedQueryAttention), RoPE: RoPENeoX,
		Activation: vecmath.SiLUOf,
		FFNNorm:    "post_attention_norm"},
	{Arch: "qwen35moe", Mixer: chooseMixer(isRecurrent, newDeltaNet(true), newGatedQueryAttention), RoPE: RoPENeoX,
		Activation: vecmath.SiLUOf, NormalizeTopK: true, FFNNorm: "post_attention_norm"},
	{Arch: "kimi-linear", Mixer: chooseMixer(isRecurrent, newKimiDeltaNet, newMLA), Activation: vecmath.SiLUOf,
		NormalizeTopK: true},
	{Arch: "nemotron_h", FallbackEpsilon: true, Mixer: newNemotronH, FFN: nemotronFFN,
		Activation:      vecmath.ReLUSquaredOf,
		RoPEIfFinetuned: true},
	{Arch: "nemotron_h_moe", FallbackEpsilon: true, Mixer: newNemotronH, FFN: nemotronFFN,
		Activation:      vecmath.ReLUSquaredOf,
		RoPEIfFinetuned: true, RouterScore: scoreSigmoid},
	{Arch: "rwkv6", LayerNorm: true, EpsilonOptional: true, Mixer: newWKV6, FFN: channelMixFFN, TimeMixFirst: true},
	{Arch: "rwkv6qwen2", EpsilonOptional: true, Mixer: newWKV6, Activation: vecmath.SiLUOf},
	{Arch: "rwkv7", LayerNorm: true, EpsilonOptional: true, Mixer: newWKV7, FFN: channelMixFFN},
	{Arch: "arwkv7", EpsilonOptional: true, Mixer: newWKV7, Activation: vecmath.SiLUOf},
	{Arch: "internlm2", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "exaone", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "exaone4", OutputNormOnly: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf, UsesRoPE: ropeInSWAOrAll},
	{Arch: "nemotron", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.ReLUSquaredOf},
	{Arch: "ernie4_5", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "ernie4_5-moe", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "hunyuan-dense", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, QKNormAfterRoPE: true},
	{Arch: "seed_oss", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, FFNNorm: "post_attention_norm"},
	{Arch: "arcee", RoPE: RoPEInterleaved, Activation: vecmath.ReLUSquaredOf},
	{Arch: "baichuan", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, ALiBiMaxBias: alibiOf13B,
		UsesRoPE: func(p *params, _ int) bool { return p.layers == 32 }},
	{Arch: "xverse", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "orion", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "deepseek2-ocr", RotatesWholeHead: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf,
		IgnoredKeys: []string{"attention.sliding_window"}},
	{Arch: "gpt-oss", RoPE: RoPENeoX, FFNActivation: func(*builder, int) ffnActivation { return swigluOAI{1.702, 7} },
		RouterScore: scoreSoftmaxOfChosen, FFNNorm: "post_attention_norm",
		IgnoredKeys: []string{"rope.scaling.yarn_truncate"}},
	{Arch: "llama4", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, UsesRoPE: llama4UsesRoPE, QKNormAfterRoPE: true,
		UnitNorm:                   func(p *params, i int) bool { return p.experts != 128 && llama4UsesRoPE(p, i) },
		AttentionTemperature:       llama4Temperature,
		TemperatureWithoutRoPEOnly: true, RouterScore: scoreSigmoid, WeighInputs: true},
	{Arch: "smallthinker", RoPE: RoPENeoX, Activation: vecmath.ReLUOf, NormalizeTopK: true, EarlyRouter: true,
		UsesRoPE: func(p *params, i int) bool { return p.window == 0 || i%4 != 0 }},
	{Arch: "apertus", RoPE: RoPENeoX, FFNActivation: newXIELU},
	{Arch: "mistral4", Mixer: newMLA, YarnLogMultiplierIsTenth: true, AttentionTemperature: temperatureFromKeys,
		GroupedRouting: true, RoPE: RoPEInterleaved,
		Activation: vecmath.SiLUOf},
	{Arch: "mistral3", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormalizeTopK: true,
		AttentionTemperature: yarnTemperature},
	{Arch: "qwen2vl", ZeroEpsilon: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "qwen3vl", Classifier: classifierOfLast, InterleavedMRoPE: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf,
		IgnoredKeys: []string{"n_deepstack_layers"}},
	{Arch: "qwen3vlmoe", InterleavedMRoPE: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf, NormalizeTopK: true,
		IgnoredKeys: []string{"n_deepstack_layers"}},
	{Arch: "chatglm", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "hunyuan-moe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, QKNormAfterRoPE: true, NormalizeTopK: true},
	{Arch: "hunyuan_vl", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, QKNormAfterRoPE: true},
	{Arch: "dots1", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "bailingmoe", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "bailingmoe2", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, GroupedRouting: true},
	{Arch: "minimax-m2", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "paddleocr", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "pangu-embedded", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "qwen", HalvedFFNLength: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "maincoder", QKNormAfterRoPE: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "openelm", RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "plamo", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, ParallelResidual: always},
	{Arch: "jais", LayerNorm: true, Activation: vecmath.SiLUOf,
		AttentionScale: func(p *params) float64 { return 1 / float64(p.keyLen) }},
	{Arch: "jais2", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.ReLUSquaredOf},
	{Arch: "codeshell", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf},
	{Arch: "refact", Activation: vecmath.SiLUOf, ALiBiMaxBias: func(*params) float64 { return 8 }},
	{Arch: "deci", RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
	{Arch: "exaone-moe", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, UsesRoPE: ropeInSWAOrAll},
	{Arch: "granite_swa", RoPEPattern: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf, NormalizeTopK: true},
	{Arch: "mellum", SWAUnscaledRoPE: true, NormalizeTopK: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "plamo3", SWADefaultRoPE: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "minicpm3", Mixer: newMLA, Defaults: minicpm3Scales, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "plm", Mixer: newMLA, RoPE: RoPEInterleaved, Activation: vecmath.ReLUSquaredOf},
	{Arch: "afmoe", RouterScore: scoreSigmoid, Mixer: newOutputGate, EmbeddingScale: sqrtOfWidth, RoPE: RoPENeoX,
		Activation: vecmath.SiLUOf, UsesRoPE: func(_ *params, i int) bool { return i%4 != 3 }},
	{Arch: "mimo2", RoPE: RoPENeoX, Activation: vecmath.SiLUOf, RouterScore: scoreSigmoid, NormalizeTopK: true,
		AttentionOutputScale: true},
	{Arch: "gemma4", Mixer: newSharedKVAttention, SWAHeadSizes: true,
		AttentionScale: func(*params) float64 { return 1 },
		RoPE:           RoPENeoX, Activation: vecmath.GELUOf, EmbeddingScale: sqrtOfWidth, SWADefaultRoPE: true},
	{Arch: "dbrx", LayerNorm: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf, NormalizeTopK: true,
		FFNNorm: "attn_output_norm"},
	{Arch: "bert", LayerNorm: true, Bidirectional: true, PostLN: true, Activation: vecmath.GELUOf},
	{Arch: "nomic-bert", LayerNorm: true, Bidirectional: true, PostLN: true, RoPE: RoPENeoX,
		Activation: vecmath.SiLUOf},
	{Arch: "nomic-bert-moe", LayerNorm: true, Bidirectional: true, PostLN: true, RoPE: RoPENeoX,
		Activation:  vecmath.GELUOf,
		IgnoredKeys: []string{"moe_every_n_layers"}},
	{Arch: "jina-bert-v2", LayerNorm: true, Bidirectional: true, PostLN: true, Activation: vecmath.GELUOf,
		ALiBiMaxBias: func(*params) float64 { return 8 }},
	{Arch: "jina-bert-v3", LayerNorm: true, Bidirectional: true, PostLN: true, RoPE: RoPENeoX,
		Activation: vecmath.GELUOf},
	{Arch: "modern-bert", Classifier: classifierOfMean, LayerNorm: true, Bidirectional: true, NoNormInFirstLayer: true,
		RoPE:       RoPENeoX,
		Activation: vecmath.GELUErfOf, ActivationFromKey: true, SWADefaultRoPE: true},
	{Arch: "neo-bert", Bidirectional: true, OutputNorm: "enc.output_norm", RoPE: RoPEInterleaved,
		Activation: vecmath.SiLUOf},
	{Arch: "eurobert", Bidirectional: true, RoPE: RoPENeoX, Activation: vecmath.SiLUOf},
	{Arch: "t5encoder", Bidirectional: true, OutputNorm: "enc.output_norm", TensorPrefix: "enc.",
		Activation:        vecmath.GELUOf,
		UngatedActivation: &vecmath.ReLUOf, AttentionScale: func(*params) float64 { return 1 }},
	{Arch: "t5", IgnoresDecoder: true, Bidirectional: true, OutputNorm: "enc.output_norm", TensorPrefix: "enc.",
		Activation:        vecmath.GELUOf,
		UngatedActivation: &vecmath.ReLUOf, AttentionScale: func(*params) float64 { return 1 },
		IgnoredKeys: []string{"decoder_block_count", "decoder_start_token_id"}},
	{Arch: "gemma-embedding", Bidirectional: true, RoPE: RoPENeoX, Activation: vecmath.GELUOf,
		EmbeddingScale: sqrtOfWidth,
		SWADefaultRoPE: true},
	{Arch: "llama-embed", Bidirectional: true, RoPE: RoPEInterleaved, Activation: vecmath.SiLUOf},
}

// alibiOf13B is Graph.ALiBiMaxBias of Baichuan: the 13 B model has ALiBi in place of RoPE.
func alibiOf13B(p *params) float64 {
	if p.layers == 40 {
		return 8
	}
	return 0
}

// ropeInSWAOrAll is Graph.UsesRoPE for layers with a window, or all if there is none.
func ropeInSWAOrAll(p *params, i int) bool { return p.window == 0 || p.isSWA(i) }

// ssmKeys are also in files of models without SSM layers.
var ssmKeys = []string{"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size", "ssm.time_step_rank"}

// chooseMixer returns a Graph.Mixer that calls yes for layers that satisfy the condition and no for the others.
func chooseMixer(condition func(p *params, i int) bool, yes, no func(*builder, int) mixer) func(*builder, int) mixer {
	return func(b *builder, i int) mixer {
		if condition(b.p, i) {
			return yes(b, i)
		}
		return no(b, i)
	}
}

// isRecurrent reports whether layer i has a state instead of keys and values.
func isRecurrent(p *params, i int) bool {
	switch {
	case p.recurrent != nil:
		return p.recurrent[i]
	case p.fullAttentionInterval > 0:
		return (i+1)%p.fullAttentionInterval != 0
	}
	return p.kv[i] == 0
}

// noFFN is Graph.FFN of layers without a feed-forward block.
func noFFN(*builder, int, *layer) {}

// minicpmScales is Graph.Defaults: the models are built for widths that are multiples of 256.
func minicpmScales(p *params) {
	p.embedScale, p.residualScale = 12, float64(float32(1.4)/float32(math.Sqrt(float64(p.layers))))
	p.logitScale = float64(256 / float32(p.width))
}

// minicpm3Scales is minicpmScales with the last factor applied to the states before the output matrix.
func minicpm3Scales(p *params) {
	minicpmScales(p)
	p.finalScale, p.logitScale = p.logitScale, 1
}

// gemma2Caps is Graph.Defaults.
func gemma2Caps(p *params) { p.attnSoftCap, p.logitSoftCap = 50, 30 }

func always(*keys, *layer) bool { return true }

// llama4UsesRoPE is Graph.UsesRoPE: in models with windows, every fourth layer has no RoPE.
func llama4UsesRoPE(p *params, i int) bool { return p.window == 0 || i%4 != 3 }

func llama4Temperature(_ *keys, p *params) temperature {
	return temperature{scale: 0.1, offset: 1, length: 8192}
}

// isSWALayer is Graph.UsesRoPE for layers with a window.
func isSWALayer(p *params, i int) bool { return p.isSWA(i) }

// isSWA reports whether layer i has a sliding window.
func (p *params) isSWA(i int) bool {
	if p.window == 0 || p.swaLayers != nil {
		return p.window > 0 && p.swaLayers[i]
	}
	return p.windows.Has(i, p.windowPattern)
}

func sqrtOfWidth(p *params) float64 { return math.Sqrt(float64(p.width)) }

// gemmaScale is Graph.AttentionScale: 1/√(length of a key), but 1/√(width / heads) in the 27 B model, which is
// recognized by its number of layers.
func gemmaScale(largest int) func(p *params) float64 {
	return func(p *params) float64 {
		if p.layers == largest {
			return 1 / math.Sqrt(float64(p.width/p.heads[0]))
		}
		return 1 / math.Sqrt(float64(p.keyLen))
	}
}

// lookup returns the graph of an architecture, nil for none.
func lookup(arch string) *Graph {
	for _, g := range graphs {
		if g.Arch == arch {
			return g
		}
	}
	return nil
}

// params are the numbers of a model.
type params struct {
	graph                      *Graph
	swaLayers, ropeLayers      []bool // by layer, or nil
	context                    int
	recurrent                  []bool // by layer, or nil
	fullAttentionInterval      int    // one layer of so many has full attention, if it is more than 0
	activation                 vecmath.Function
	bidirectional              bool // attention is not causal
	pooling, classifierPooling Pooling
	relativeBuckets            int // buckets of the relative position bias
	ropeStyle                  RoPE
	allLayers                  int // layers with those of MTP (NextN)
	alibi                      float64
	arch                       string
	layers, width, vocab       int
	heads, kv, ff              []int // by layer
	keyLen, valueLen           int
	ropeDim                    int
	rope, swaRope              rotation
	eps                        float64
	rms                        bool
	embedScale, attnScale      float64
	residualScale              float64
	logitScale                 float64
	finalScale                 float64 // of the inputs of the output matrix
	attnSoftCap, logitSoftCap  float64
	windows                    *window.Row // nil for none
	window, windowPattern      int
	experts                    int
	expertsUsed                []int // by layer
	expertScore                int
	normalizeTopK              bool
	expertScale                float64
	expertGroups               int
	expertGroupsUsed           int
	clamp                      float64
	temperature                temperature
}

func (g *Graph) params(k *keys, tensors int) *params {
	p := &params{graph: g, arch: g.Arch, layers: k.RequiredSize("block_count"),
		width: k.RequiredSize("embedding_length")}
	if p.allLayers = p.layers; p.allLayers > tensors {
		k.fail(errBroken, "%q is %d, in a file of %d tensors", p.arch+".block_count", p.allLayers, tensors)
	}
	p.layers -= k.Size("nextn_predict_layers", 0)
	p.heads = k.RequiredSizes("attention.head_count", p.allLayers)
	p.kv = p.heads
	if k.Has("attention.head_count_kv") {
		p.kv = k.RequiredSizes("attention.head_count_kv", p.allLayers)
	}
	p.ff = k.Sizes("feed_forward_length", p.allLayers, 0)
	if g.HalvedFFNLength {
		for i := range p.ff {
			p.ff[i] /= 2
		}
	}
	if p.layers <= 0 || g.Mixer == nil && p.heads[0] == 0 {
		k.fail(errBroken, "%q and %q have to be at least 1", p.arch+".block_count", p.arch+".attention.head_count")
	}
	each := 0
	if heads := p.heads[0]; heads > 0 { // there may be none
		each = p.width / heads
	}
	p.keyLen, p.valueLen = k.Size("attention.key_length", each), k.Size("attention.value_length", each)
	if p.ropeDim = k.Size("rope.dimension_count", p.keyLen); g.RotatesWholeHead {
		p.ropeDim = p.keyLen
	}
	if p.ropeStyle = g.RoPE; p.ropeStyle == RoPEInterleaved && k.Has("rope.dimension_sections") {
		p.ropeStyle = RoPENeoX // as in every model with M-RoPE
	}
	p.rope = k.rope(p.ropeDim, 10000)
	if g.RoPEIfFinetuned && !k.Flag("rope.scaling.finetuned", true) {
		p.ropeStyle = RoPENone
	}
	p.rope.fixed = k.fixedPairs(p.ropeDim/2, g.InterleavedMRoPE)
	const rmsEpsilon, layerNormEpsilon = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
	epsilon, needed := rmsEpsilon, rmsEpsilon
	if p.rms = !g.LayerNorm; g.LayerNorm {
		epsilon, needed = layerNormEpsilon, layerNormEpsilon
	}
	if g.FallbackEpsilon {
		if needed = layerNormEpsilon; !k.Has(rmsEpsilon) {
			epsilon = layerNormEpsilon
		}
	}
	switch { // that of the other kind of norm may be there, too
	case g.ZeroEpsilon:
	case k.Has(needed) || g.EpsilonOptional:
		p.eps = k.Float(epsilon, 0)
	default:
		k.fail(errBroken, "no key %q, which its norms need", k.Arch+"."+needed)
	}
	k.Ignore(rmsEpsilon, layerNormEpsilon)
	p.embedScale, p.residualScale, p.logitScale, p.finalScale = 1, 1, 1, 1
	if g.Defaults != nil {
		g.Defaults(p)
	}
	p.embedScale = k.Float("embedding_scale", p.embedScale)
	if g.EmbeddingScale != nil {
		p.embedScale = float64(float32(g.EmbeddingScale(p)))
	}
	p.attnScale = 1 / math.Sqrt(float64(p.keyLen))
	if g.AttentionScale != nil {
		p.attnScale = g.AttentionScale(p)
	}
	if s := k.Float("attention.scale", 0); s != 0 {
		p.attnScale = s
	}
	if g.AttentionTemperature != nil {
		p.temperature = g.AttentionTemperature(k, p)
	}
	p.context = k.Size("context_length", 0)
	if g.Mixer != nil && (k.Has("attention.recurrent_layers") || k.Has("full_attention_interval")) {
		p.recurrent, _ = k.pattern("attention.recurrent_layers", p.layers, p.allLayers, 0)
		p.fullAttentionInterval = k.Size("full_attention_interval", 4)
	}
	if p.activation = g.Activation; g.ActivationFromKey {
		p.activation = k.activation("hidden_activation", g.Activation)
	}
	p.bidirectional = !k.Flag("attention.causal", true) || g.Bidirectional
	p.pooling, p.classifierPooling = k.pooling("pooling_type", PoolNone),
		k.pooling("classifier.pooling_type", poolUnset)
	p.relativeBuckets = k.Size("attention.relative_buckets_count", 0)
	p.clamp = k.Float("attention.clamp_kqv", 0)
	p.alibi = k.Float("attention.max_alibi_bias", 0)
	if g.ALiBiMaxBias != nil {
		p.alibi = g.ALiBiMaxBias(p)
	}
	p.residualScale = k.Float("residual_scale", p.residualScale)
	if p.logitScale = k.Float("logit_scale", p.logitScale); p.logitScale == 0 {
		p.logitScale = 1
	}
	if !g.MultiplyLogits {
		p.logitScale = 1 / p.logitScale
	}
	if g.RoPEPattern && k.Has("attention.rope_pattern") {
		p.ropeLayers, _ = k.pattern("attention.rope_pattern", p.layers, p.allLayers, 0)
	}
	p.attnSoftCap, p.logitSoftCap = k.Float("attn_logit_softcapping", p.attnSoftCap),
		k.Float("final_logit_softcapping", p.logitSoftCap)
	if p.windows = window.Lookup(g.Arch); p.windows != nil {
		n := int64(-1)
		if k.Has("attention.sliding_window") {
			n = int64(k.Size("attention.sliding_window", 0))
		}
		p.window = int(p.windows.Length(p.layers, n))
		p.swaLayers, p.windowPattern = k.pattern("attention.sliding_window_pattern", p.layers, p.allLayers,
			p.windows.Period)
		if p.windows.Listed && p.window > 0 && p.swaLayers == nil {
			k.fail(errBroken, "%q is no list of layers", k.Arch+".attention.sliding_window_pattern")
		}
	}
	p.swaRope = p.rope
	if g.SWADefaultRoPE {
		p.swaRope = rotation{dims: p.ropeDim, base: 10000, scale: 1, magnitude: 1}
	}
	if g.SWAUnscaledRoPE {
		p.swaRope = rotation{dims: p.ropeDim, base: p.rope.base, scale: 1, magnitude: 1}
	}
	if g.SWAHeadSizes {
		p.swaRope.dims = k.Size("rope.dimension_count_swa", p.ropeDim)
	}
	if p.windows != nil {
		p.swaRope.base = k.Float("rope.freq_base_swa", p.swaRope.base)
	}
	p.experts, p.expertsUsed = k.Size("expert_count", 0), k.Sizes("expert_used_count", p.allLayers, 0)
	if p.experts > 0 {
		score := max(g.RouterScore, scoreSoftmax)
		if p.expertScore = k.Size("expert_gating_func", score); p.expertScore == 0 {
			p.expertScore = score
		}
		if p.expertScore > scoreSoftmaxOfChosen {
			k.fail(errUnsupported, "%q is %d, want 1 to %d", p.arch+".expert_gating_func", p.expertScore,
				scoreSoftmaxOfChosen)
		}
		p.normalizeTopK, p.expertScale = k.Flag("expert_weights_norm", g.NormalizeTopK),
			k.Float("expert_weights_scale", 1)
		groups, used := k.Size("expert_group_count", 0), k.Size("expert_group_used_count", 0)
		if g.GroupedRouting {
			p.expertGroups, p.expertGroupsUsed = groups, used
		}
	}
	k.Ignore("expert_feed_forward_length", "expert_shared_count", "expert_shared_feed_forward_length",
		"leading_dense_block_count", "moe_latent_size", "interleave_moe_layer_step")
	k.Ignore(g.IgnoredKeys...)
	if p.keyLen == 0 && g.Mixer == nil || p.ropeDim > p.keyLen || p.keyLen > 1<<14 {
		k.fail(errBroken, "RoPE rotates %d of the %d values of a key", p.ropeDim, p.keyLen)
	}
	if p.ropeDim%2 != 0 {
		k.fail(errUnsupported, "RoPE rotates %d values of a key, want an even number", p.ropeDim)
	}
	return p
}
