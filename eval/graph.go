package eval

import (
	"math"

	"ggforge/eval/internal/window"
	"ggforge/internal/kernel/vecmath"
)

// Graph says what the tensors of an architecture do not: everything that has a tensor or
// a key of its own (biases, norms of heads, further norms, experts, fused projections,
// scales) is read from the file. The zero value of a field is the usual thing.
type Graph struct {
	Arch string
	// Mixer returns the part of layer i in which tokens see each other; nil for attention
	// with queries, keys and values.
	Mixer func(b *builder, i int) mixer
	// Feed sets the second part of layer i, its norm and what else is unusual; nil for a
	// feed-forward layer or experts.
	Feed func(b *builder, i int, l *layer)
	// First says that heads of RWKV 6 read what a token adds before it is in their state, by
	// factors of their own, and that its second part has a gate.
	First bool
	// OutNorm is the name of the last norm; "" for output_norm.
	OutNorm string
	// Rope is how queries and keys are turned.
	Rope Rope
	// AllMultiplier says that rope.scaling.yarn_log_multiplier is that of what turning multiplies
	// by as well, unless it is 1: the two cancel each other.
	AllMultiplier bool
	// TenthMultiplier says that rope.scaling.yarn_log_multiplier is a tenth of what it means.
	TenthMultiplier bool
	// WholeRope says that heads are turned as a whole, whatever rope.dimension_count is.
	WholeRope bool
	// AxesTurn says that the axes of a position take turns along the pairs.
	AxesTurn bool
	// Turned reports whether layer i turns queries and keys; nil for all.
	Turned func(p *params, i int) bool
	// MayTurn says that rope.scaling.finetuned says whether they are.
	MayTurn bool
	// NormLast says that heads are normalized after they are turned.
	NormLast bool
	// HeadNorm reports whether heads of layer i are normalized without weights; nil for
	// none.
	HeadNorm func(p *params, i int) bool
	// OutScale says that what attention says is multiplied by attention.value_scale.
	OutScale bool
	// Temper returns what queries are multiplied by; nil for nothing.
	Temper func(k *keys, p *params) temper
	// TurnKey says that attention.rope_pattern says which layers turn queries and keys.
	TurnKey bool
	// TemperUnturned says that only queries that are not turned are multiplied.
	TemperUnturned bool
	// Act is the activation of the feed-forward layer: of its gate if there is one.
	Act vecmath.Function
	// Unit returns what is in its place in layer i; nil for Act.
	Unit func(b *builder, i int) unit
	// NamedAct says that hidden_activation names another activation.
	NamedAct bool
	// HalfFeed says that feed_forward_length is twice what it says.
	HalfFeed bool
	// EmbedScale returns the factor of embeddings; nil for that of embedding_scale, or 1.
	EmbedScale func(p *params) float64
	// AttnScale returns the factor of attention scores; nil for that of attention.scale, or
	// 1/√(length of a key).
	AttnScale func(p *params) float64
	// LayerNorm says that norms subtract the mean; otherwise they are RMS norms.
	LayerNorm bool
	// NoEpsilon says that nothing is added under the root of a norm, whatever the file says:
	// the reference's runtime does not read it.
	NoEpsilon bool
	// EpsilonOptional means that norms add nothing under the root where the file has no epsilon.
	EpsilonOptional bool
	// EitherEpsilon means that RMS norms take attention.layer_norm_epsilon, which the file has to
	// have, unless it has attention.layer_norm_rms_epsilon.
	EitherEpsilon bool
	// BareNorm says that norms have neither weights nor biases.
	BareNorm bool
	// Parallel reports whether attention and feed-forward layer read the same state, in a
	// layer with norms as these; nil for no. A layer that has no norm of its own for the
	// latter has one for both.
	Parallel func(k *keys, l *layer) bool
	// NormAfter says that the parts of a layer read the stream as it is, and what they add is
	// normalized.
	NormAfter bool
	// NormSum says that the parts of a layer read the stream as it is, and the stream is
	// normalized after each. There is no norm after the last layer.
	NormSum bool
	// BareFirst says that the first layer reads the embeddings as they are.
	BareFirst bool
	// LocalRope says that layers with a window turn by a base of 10000 if there is no
	// rope.freq_base_swa, and without scaling.
	LocalRope bool
	// Encoder says that each token sees all others, also those that follow. Other
	// architectures have attention.causal.
	Encoder bool
	// Prefix is what names of tensors of layers begin with.
	Prefix string
	// Decoder says that there are layers of a decoder, which reads what the encoder says.
	Decoder bool
	// Head is what is done before and between the tensors of a classifier.
	Head headKind
	// Ungated is the activation of feed-forward layers without a gate; nil for Act.
	Ungated *vecmath.Function
	// LocalPlain says that layers with a window turn without scaling.
	LocalPlain bool
	// LocalHeads says that layers with a window have lengths of heads and of what is turned of
	// their own, that factors of frequencies are of the others, and that layers have embeddings
	// and a factor of their own.
	LocalHeads bool
	// Alibi returns the largest factor of distances that are subtracted from scores; nil for
	// that of attention.max_alibi_bias, or none.
	Alibi func(p *params) float64
	// Normed says that the weights of the chosen experts are divided by their sum, where no
	// key says it.
	Normed bool
	// Score is how routers make weights of their outputs, where no key says it; 0 for
	// scoreSoftmax.
	Score int
	// EarlyRouter says that routers read the stream before the layer, not normalized.
	EarlyRouter bool
	// Grouped says that experts are chosen among the best groups only.
	Grouped bool
	// WeighFirst says that what experts read is weighed, not what they say.
	WeighFirst bool
	// Defaults sets factors and caps that are not 1 and none where a file has no key for them; nil
	// for none.
	Defaults func(p *params)
	// LogitsBy says that logits are multiplied by logit_scale; otherwise they are divided by
	// it.
	LogitsBy bool
	// FeedNorm is the name of the norm of what the feed-forward layer reads; "" for ffn_norm.
	FeedNorm string
	// Also are keys that say nothing beyond what the graph does.
	Also []string
}

// graphs are the architectures that can be evaluated.
var graphs = []*Graph{
	{Arch: "llama", Rope: RopePairs, Act: vecmath.SiLUOf, Normed: true},
	{Arch: "qwen2", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "qwen2moe", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "qwen3", Head: headOfLast, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "qwen3moe", Rope: RopeHalves, Act: vecmath.SiLUOf, Normed: true},
	{Arch: "gemma", Rope: RopeHalves, Act: vecmath.GELUOf, EmbedScale: rootOfWidth},
	{Arch: "gemma2", Defaults: gemma2Caps, Rope: RopeHalves, Act: vecmath.GELUOf, EmbedScale: rootOfWidth,
		AttnScale: gemmaScale(46)},
	{Arch: "gemma3", Rope: RopeHalves, Act: vecmath.GELUOf, EmbedScale: rootOfWidth, AttnScale: gemmaScale(62),
		LocalRope: true},
	{Arch: "phi2", LayerNorm: true, Rope: RopeHalves, Act: vecmath.GELUOf, Parallel: always},
	{Arch: "phi3", Rope: RopeHalves, Act: vecmath.SiLUOf, Also: []string{"attention.sliding_window"}},
	{Arch: "phimoe", Rope: RopeHalves, Act: vecmath.SiLUOf, Normed: true, Also: []string{"attention.sliding_window"}},
	{Arch: "granite", Rope: RopePairs, Act: vecmath.SiLUOf,
		Also: append([]string{"deepstack_mapping", "expert_shared_feed_forward_length"}, ssmKeys...), MayTurn: true},
	{Arch: "granitemoe", Rope: RopePairs, Act: vecmath.SiLUOf, Normed: true, Also: ssmKeys, MayTurn: true},
	{Arch: "minicpm", Defaults: minicpmScales, Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "olmo", LayerNorm: true, Rope: RopePairs, Act: vecmath.SiLUOf, BareNorm: true},
	{Arch: "olmo2", LocalPlain: true, NormAfter: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "olmoe", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "smollm3", Rope: RopePairs, Act: vecmath.SiLUOf, Turned: func(_ *params, i int) bool { return i%4 != 3 }},
	{Arch: "glm4", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "glm4moe", Score: scoreSigmoid, Grouped: true, Rope: RopeHalves, Act: vecmath.SiLUOf,
		FeedNorm: "post_attention_norm"},
	{Arch: "deepseek", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "deepseek2", Mixer: newLatent, AllMultiplier: true, TenthMultiplier: true, Temper: temperature,
		Grouped: true, Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "command-r", LayerNorm: true, Rope: RopePairs, Act: vecmath.SiLUOf, Parallel: always, LogitsBy: true},
	{Arch: "cohere2", LayerNorm: true, Rope: RopePairs, Act: vecmath.SiLUOf, Parallel: always, LogitsBy: true,
		Turned: local},
	{Arch: "gptneox", LayerNorm: true, Rope: RopeHalves, Act: vecmath.GELUOf,
		Parallel: func(k *keys, _ *layer) bool { return k.flag("use_parallel_residual", true) }},
	{Arch: "gpt2", LayerNorm: true, Act: vecmath.GELUOf},
	{Arch: "falcon", LayerNorm: true, Rope: RopeHalves, Act: vecmath.GELUOf, Parallel: always},
	{Arch: "bloom", LayerNorm: true, Act: vecmath.GELUOf, Alibi: func(*params) float64 { return 8 }},
	{Arch: "mpt", LayerNorm: true, Act: vecmath.GELUOf},
	{Arch: "starcoder", LayerNorm: true, Act: vecmath.GELUOf},
	{Arch: "starcoder2", LayerNorm: true, Rope: RopeHalves, Act: vecmath.GELUOf},
	{Arch: "stablelm", LayerNorm: true, Rope: RopeHalves, Act: vecmath.SiLUOf, Also: []string{"use_parallel_residual"},
		Parallel: func(_ *keys, l *layer) bool { return l.ffnNorm == nil }},
	{Arch: "mamba", Mixer: newMamba, Feed: noFeed},
	{Arch: "mamba2", Mixer: newMamba2, Feed: noFeed},
	{Arch: "jamba", Mixer: where(recurs, newMamba, newAttention), Act: vecmath.SiLUOf},
	{Arch: "granitehybrid", Mixer: where(recurs, newMamba2, newAttention), Rope: RopePairs, Act: vecmath.SiLUOf,
		Normed: true, MayTurn: true, Also: []string{"expert_shared_feed_forward_length"}},
	{Arch: "falcon-h1", Mixer: newBoth, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "lfm2", Mixer: where(recurs, newShortConv, newAttention), OutNorm: "token_embd_norm", Rope: RopeHalves,
		Act: vecmath.SiLUOf},
	{Arch: "lfm2moe", Mixer: where(recurs, newShortConv, newAttention), OutNorm: "token_embd_norm", Rope: RopeHalves,
		Act: vecmath.SiLUOf, Normed: true},
	{Arch: "qwen3next", Mixer: where(recurs, newDeltaNet(false), newGatedAttention), Rope: RopeHalves,
		Act: vecmath.SiLUOf, Normed: true, FeedNorm: "post_attention_norm"},
	{Arch: "qwen35", Mixer: where(recurs, newDeltaNet(true), newGatedAttention), Rope: RopeHalves, Act: vecmath.SiLUOf,
		FeedNorm: "post_attention_norm"},
	{Arch: "qwen35moe", Mixer: where(recurs, newDeltaNet(true), newGatedAttention), Rope: RopeHalves,
		Act: vecmath.SiLUOf, Normed: true, FeedNorm: "post_attention_norm"},
	{Arch: "kimi-linear", Mixer: where(recurs, newKimiDelta, newLatent), Act: vecmath.SiLUOf, Normed: true},
	{Arch: "nemotron_h", EitherEpsilon: true, Mixer: newNemotronH, Feed: nemotronFeed, Act: vecmath.ReLUSquaredOf,
		MayTurn: true},
	{Arch: "nemotron_h_moe", EitherEpsilon: true, Mixer: newNemotronH, Feed: nemotronFeed, Act: vecmath.ReLUSquaredOf,
		MayTurn: true, Score: scoreSigmoid},
	{Arch: "rwkv6", LayerNorm: true, EpsilonOptional: true, Mixer: newWKV6, Feed: channelFeed, First: true},
	{Arch: "rwkv6qwen2", EpsilonOptional: true, Mixer: newWKV6, Act: vecmath.SiLUOf},
	{Arch: "rwkv7", LayerNorm: true, EpsilonOptional: true, Mixer: newWKV7, Feed: channelFeed},
	{Arch: "arwkv7", EpsilonOptional: true, Mixer: newWKV7, Act: vecmath.SiLUOf},
	{Arch: "internlm2", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "exaone", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "exaone4", NormAfter: true, Rope: RopeHalves, Act: vecmath.SiLUOf, Turned: localOrAll},
	{Arch: "nemotron", LayerNorm: true, Rope: RopeHalves, Act: vecmath.ReLUSquaredOf},
	{Arch: "ernie4_5", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "ernie4_5-moe", Rope: RopePairs, Act: vecmath.SiLUOf, Normed: true},
	{Arch: "hunyuan-dense", Rope: RopeHalves, Act: vecmath.SiLUOf, NormLast: true},
	{Arch: "seed_oss", Rope: RopeHalves, Act: vecmath.SiLUOf, FeedNorm: "post_attention_norm"},
	{Arch: "arcee", Rope: RopePairs, Act: vecmath.ReLUSquaredOf},
	{Arch: "baichuan", Rope: RopePairs, Act: vecmath.SiLUOf, Alibi: large,
		Turned: func(p *params, _ int) bool { return p.layers == 32 }},
	{Arch: "xverse", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "orion", LayerNorm: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "deepseek2-ocr", WholeRope: true, Rope: RopeHalves, Act: vecmath.SiLUOf,
		Also: []string{"attention.sliding_window"}},
	{Arch: "gpt-oss", Rope: RopeHalves, Unit: func(*builder, int) unit { return swigluOAI{1.702, 7} },
		Score: scoreChosen, FeedNorm: "post_attention_norm", Also: []string{"rope.scaling.yarn_truncate"}},
	{Arch: "llama4", Rope: RopePairs, Act: vecmath.SiLUOf, Turned: llama4Turned, NormLast: true,
		HeadNorm: func(p *params, i int) bool { return p.experts != 128 && llama4Turned(p, i) }, Temper: llama4Temper,
		TemperUnturned: true, Score: scoreSigmoid, WeighFirst: true},
	{Arch: "smallthinker", Rope: RopeHalves, Act: vecmath.ReLUOf, Normed: true, EarlyRouter: true,
		Turned: func(p *params, i int) bool { return p.window == 0 || i%4 != 0 }},
	{Arch: "apertus", Rope: RopeHalves, Unit: newXIELU},
	{Arch: "mistral4", Mixer: newLatent, TenthMultiplier: true, Temper: temperature, Grouped: true, Rope: RopePairs,
		Act: vecmath.SiLUOf},
	{Arch: "mistral3", Rope: RopePairs, Act: vecmath.SiLUOf, Normed: true, Temper: temperatureOfYaRN},
	{Arch: "qwen2vl", NoEpsilon: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "qwen3vl", Head: headOfLast, AxesTurn: true, Rope: RopeHalves, Act: vecmath.SiLUOf,
		Also: []string{"n_deepstack_layers"}},
	{Arch: "qwen3vlmoe", AxesTurn: true, Rope: RopeHalves, Act: vecmath.SiLUOf, Normed: true,
		Also: []string{"n_deepstack_layers"}},
	{Arch: "chatglm", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "hunyuan-moe", Rope: RopeHalves, Act: vecmath.SiLUOf, NormLast: true, Normed: true},
	{Arch: "hunyuan_vl", Rope: RopeHalves, Act: vecmath.SiLUOf, NormLast: true},
	{Arch: "dots1", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "bailingmoe", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "bailingmoe2", Rope: RopeHalves, Act: vecmath.SiLUOf, Grouped: true},
	{Arch: "minimax-m2", Rope: RopeHalves, Act: vecmath.SiLUOf, Normed: true},
	{Arch: "paddleocr", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "pangu-embedded", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "qwen", HalfFeed: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "maincoder", NormLast: true, Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "openelm", Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "plamo", Rope: RopeHalves, Act: vecmath.SiLUOf, Parallel: always},
	{Arch: "jais", LayerNorm: true, Act: vecmath.SiLUOf,
		AttnScale: func(p *params) float64 { return 1 / float64(p.keyLen) }},
	{Arch: "jais2", LayerNorm: true, Rope: RopeHalves, Act: vecmath.ReLUSquaredOf},
	{Arch: "codeshell", LayerNorm: true, Rope: RopeHalves, Act: vecmath.GELUOf},
	{Arch: "refact", Act: vecmath.SiLUOf, Alibi: func(*params) float64 { return 8 }},
	{Arch: "deci", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "exaone-moe", Rope: RopeHalves, Act: vecmath.SiLUOf, Turned: localOrAll},
	{Arch: "granite_swa", TurnKey: true, Rope: RopePairs, Act: vecmath.SiLUOf, Normed: true},
	{Arch: "mellum", LocalPlain: true, Normed: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "plamo3", LocalRope: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "minicpm3", Mixer: newLatent, Defaults: minicpm3Scales, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "plm", Mixer: newLatent, Rope: RopePairs, Act: vecmath.ReLUSquaredOf},
	{Arch: "afmoe", Score: scoreSigmoid, Mixer: newGated, EmbedScale: rootOfWidth, Rope: RopeHalves,
		Act: vecmath.SiLUOf, Turned: func(_ *params, i int) bool { return i%4 != 3 }},
	{Arch: "mimo2", Rope: RopeHalves, Act: vecmath.SiLUOf, Score: scoreSigmoid, Normed: true, OutScale: true},
	{Arch: "gemma4", Mixer: newLending, LocalHeads: true, AttnScale: func(*params) float64 { return 1 },
		Rope: RopeHalves, Act: vecmath.GELUOf, EmbedScale: rootOfWidth, LocalRope: true},
	{Arch: "dbrx", LayerNorm: true, Rope: RopeHalves, Act: vecmath.SiLUOf, Normed: true, FeedNorm: "attn_output_norm"},
	{Arch: "bert", LayerNorm: true, Encoder: true, NormSum: true, Act: vecmath.GELUOf},
	{Arch: "nomic-bert", LayerNorm: true, Encoder: true, NormSum: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "nomic-bert-moe", LayerNorm: true, Encoder: true, NormSum: true, Rope: RopeHalves, Act: vecmath.GELUOf,
		Also: []string{"moe_every_n_layers"}},
	{Arch: "jina-bert-v2", LayerNorm: true, Encoder: true, NormSum: true, Act: vecmath.GELUOf,
		Alibi: func(*params) float64 { return 8 }},
	{Arch: "jina-bert-v3", LayerNorm: true, Encoder: true, NormSum: true, Rope: RopeHalves, Act: vecmath.GELUOf},
	{Arch: "modern-bert", Head: headOfMean, LayerNorm: true, Encoder: true, BareFirst: true, Rope: RopeHalves,
		Act: vecmath.GELUErfOf, NamedAct: true, LocalRope: true},
	{Arch: "neo-bert", Encoder: true, OutNorm: "enc.output_norm", Rope: RopePairs, Act: vecmath.SiLUOf},
	{Arch: "eurobert", Encoder: true, Rope: RopeHalves, Act: vecmath.SiLUOf},
	{Arch: "t5encoder", Encoder: true, OutNorm: "enc.output_norm", Prefix: "enc.", Act: vecmath.GELUOf,
		Ungated: &vecmath.ReLUOf, AttnScale: func(*params) float64 { return 1 }},
	{Arch: "t5", Decoder: true, Encoder: true, OutNorm: "enc.output_norm", Prefix: "enc.", Act: vecmath.GELUOf,
		Ungated: &vecmath.ReLUOf, AttnScale: func(*params) float64 { return 1 },
		Also: []string{"decoder_block_count", "decoder_start_token_id"}},
	{Arch: "gemma-embedding", Encoder: true, Rope: RopeHalves, Act: vecmath.GELUOf, EmbedScale: rootOfWidth,
		LocalRope: true},
	{Arch: "llama-embed", Encoder: true, Rope: RopePairs, Act: vecmath.SiLUOf},
}

// large is Graph.Alibi for models of 13 B, which do not turn.
func large(p *params) float64 {
	if p.layers == 40 {
		return 8
	}
	return 0
}

// localOrAll is Graph.Turned for layers with a window, or all if there is none.
func localOrAll(p *params, i int) bool { return p.window == 0 || p.local(i) }

// ssmKeys are keys that models without such layers have, too.
var ssmKeys = []string{"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size", "ssm.time_step_rank"}

// where is Graph.Mixer for layers of two kinds: yes for those that the condition accepts.
func where(condition func(p *params, i int) bool, yes, no func(*builder, int) mixer) func(*builder, int) mixer {
	return func(b *builder, i int) mixer {
		if condition(b.p, i) {
			return yes(b, i)
		}
		return no(b, i)
	}
}

// recurs reports whether layer i has a state instead of keys and values.
func recurs(p *params, i int) bool {
	switch {
	case p.recurrent != nil:
		return p.recurrent[i]
	case p.everyFull > 0:
		return (i+1)%p.everyFull != 0
	}
	return p.kv[i] == 0
}

// noFeed is Graph.Feed for layers that are a mixer alone.
func noFeed(*builder, int, *layer) {}

// minicpmScales is Graph.Defaults: the models are built for widths that are multiples of 256.
func minicpmScales(p *params) {
	p.embedScale, p.residualScale = 12, float64(float32(1.4)/float32(math.Sqrt(float64(p.layers))))
	p.logitScale = float64(256 / float32(p.width))
}

// minicpm3Scales is minicpmScales where the states that make logits are multiplied.
func minicpm3Scales(p *params) {
	minicpmScales(p)
	p.finalScale, p.logitScale = p.logitScale, 1
}

// gemma2Caps is Graph.Defaults.
func gemma2Caps(p *params) { p.attnCap, p.finalCap = 50, 30 }

func always(*keys, *layer) bool { return true }

// llama4Turned is Graph.Turned: every fourth layer does not, in models with windows.
func llama4Turned(p *params, i int) bool { return p.window == 0 || i%4 != 3 }

func llama4Temper(_ *keys, p *params) temper { return temper{scale: 0.1, offset: 1, every: 8192} }

// local is Graph.Turned for layers with a window.
func local(p *params, i int) bool { return p.local(i) }

// local reports whether layer i sees a window.
func (p *params) local(i int) bool {
	if p.window == 0 || p.windowed != nil {
		return p.window > 0 && p.windowed[i]
	}
	return p.windows.Has(i, p.windowPattern)
}

func rootOfWidth(p *params) float64 { return math.Sqrt(float64(p.width)) }

// gemmaScale is Graph.AttnScale: 1/√(length of a key), in the models of 27 B, which have so
// many layers, that of a share of the width.
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
	graph                 *Graph
	windowed, turned      []bool // by layer, or nil
	context               int
	recurrent             []bool // by layer, or nil
	everyFull             int    // every so many layers are not recurrent, if it is more than 0
	act                   vecmath.Function
	encoder               bool // tokens see those that follow
	pooling, headPooling  Pooling
	buckets               int // of distances, whose scores have a table
	style                 Rope
	blocks                int // layers, with those that predict further tokens
	alibi                 float64
	arch                  string
	layers, width, vocab  int
	heads, kv, ff         []int // by layer
	keyLen, valueLen      int
	ropeDim               int
	rope, localRope       rotation
	eps                   float64
	rms                   bool
	embedScale, attnScale float64
	residualScale         float64
	logitScale            float64
	finalScale            float64 // of the states that the output matrix reads
	attnCap, finalCap     float64
	windows               *window.Row // nil for none
	window, windowPattern int
	experts               int
	expertsUsed           []int // by layer
	expertScore           int
	expertNormed          bool
	expertScale           float64
	expertGroups          int
	expertGroupsUsed      int
	clamp                 float64
	temper                temper
}

func (g *Graph) params(k *keys, tensors int) *params {
	p := &params{graph: g, arch: g.Arch, layers: k.size("block_count", -1), width: k.size("embedding_length", -1)}
	if p.blocks = p.layers; p.blocks > tensors {
		k.fail(errBroken, "%q is %d, in a file of %d tensors", p.arch+".block_count", p.blocks, tensors)
	}
	p.layers -= k.size("nextn_predict_layers", 0)
	p.heads = k.sizes("attention.head_count", p.blocks, -1)
	p.kv = p.heads
	if k.has("attention.head_count_kv") {
		p.kv = k.sizes("attention.head_count_kv", p.blocks, -1)
	}
	p.ff = k.sizes("feed_forward_length", p.blocks, 0)
	if g.HalfFeed {
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
	p.keyLen, p.valueLen = k.size("attention.key_length", each), k.size("attention.value_length", each)
	if p.ropeDim = k.size("rope.dimension_count", p.keyLen); g.WholeRope {
		p.ropeDim = p.keyLen
	}
	if p.style = g.Rope; p.style == RopePairs && k.has("rope.dimension_sections") {
		p.style = RopeHalves // as all that turn by several axes do
	}
	p.rope = k.rope(p.ropeDim, 10000)
	if g.MayTurn && !k.flag("rope.scaling.finetuned", true) {
		p.style = RopeNone
	}
	p.rope.still = k.still(p.ropeDim/2, g.AxesTurn)
	const rmsEpsilon, layerNormEpsilon = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
	epsilon, needed := rmsEpsilon, rmsEpsilon
	if p.rms = !g.LayerNorm; g.LayerNorm {
		epsilon, needed = layerNormEpsilon, layerNormEpsilon
	}
	if g.EitherEpsilon {
		if needed = layerNormEpsilon; !k.has(rmsEpsilon) {
			epsilon = layerNormEpsilon
		}
	}
	switch { // that of the other kind of norm may be there, too
	case g.NoEpsilon:
	case k.has(needed) || g.EpsilonOptional:
		p.eps = k.float(epsilon, 0)
	default:
		k.fail(errBroken, "no key %q, which its norms need", k.arch+"."+needed)
	}
	k.ignore(rmsEpsilon, layerNormEpsilon)
	p.embedScale, p.residualScale, p.logitScale, p.finalScale = 1, 1, 1, 1
	if g.Defaults != nil {
		g.Defaults(p)
	}
	p.embedScale = k.float("embedding_scale", p.embedScale)
	if g.EmbedScale != nil {
		p.embedScale = float64(float32(g.EmbedScale(p)))
	}
	p.attnScale = 1 / math.Sqrt(float64(p.keyLen))
	if g.AttnScale != nil {
		p.attnScale = g.AttnScale(p)
	}
	if s := k.float("attention.scale", 0); s != 0 {
		p.attnScale = s
	}
	if g.Temper != nil {
		p.temper = g.Temper(k, p)
	}
	p.context = k.size("context_length", 0)
	if g.Mixer != nil && (k.has("attention.recurrent_layers") || k.has("full_attention_interval")) {
		p.recurrent, _ = k.pattern("attention.recurrent_layers", p.layers, p.blocks, 0)
		p.everyFull = k.size("full_attention_interval", 4)
	}
	if p.act = g.Act; g.NamedAct {
		p.act = k.activation("hidden_activation", g.Act)
	}
	p.encoder = !k.flag("attention.causal", true) || g.Encoder
	p.pooling, p.headPooling = k.pooling("pooling_type", PoolNone), k.pooling("classifier.pooling_type", poolUnset)
	p.buckets = k.size("attention.relative_buckets_count", 0)
	p.clamp = k.float("attention.clamp_kqv", 0)
	p.alibi = k.float("attention.max_alibi_bias", 0)
	if g.Alibi != nil {
		p.alibi = g.Alibi(p)
	}
	p.residualScale = k.float("residual_scale", p.residualScale)
	if p.logitScale = k.float("logit_scale", p.logitScale); p.logitScale == 0 {
		p.logitScale = 1
	}
	if !g.LogitsBy {
		p.logitScale = 1 / p.logitScale
	}
	if g.TurnKey && k.has("attention.rope_pattern") {
		p.turned, _ = k.pattern("attention.rope_pattern", p.layers, p.blocks, 0)
	}
	p.attnCap, p.finalCap = k.float("attn_logit_softcapping", p.attnCap), k.float("final_logit_softcapping", p.finalCap)
	if p.windows = window.Lookup(g.Arch); p.windows != nil {
		n := int64(-1)
		if k.has("attention.sliding_window") {
			n = int64(k.size("attention.sliding_window", 0))
		}
		p.window = int(p.windows.Length(p.layers, n))
		p.windowed, p.windowPattern = k.pattern("attention.sliding_window_pattern", p.layers, p.blocks,
			p.windows.Period)
		if p.windows.Listed && p.window > 0 && p.windowed == nil {
			k.fail(errBroken, "%q is no list of layers", k.arch+".attention.sliding_window_pattern")
		}
	}
	p.localRope = p.rope
	if g.LocalRope {
		p.localRope = rotation{dims: p.ropeDim, base: 10000, scale: 1, attn: 1}
	}
	if g.LocalPlain {
		p.localRope = rotation{dims: p.ropeDim, base: p.rope.base, scale: 1, attn: 1}
	}
	if g.LocalHeads {
		p.localRope.dims = k.size("rope.dimension_count_swa", p.ropeDim)
	}
	if p.windows != nil {
		p.localRope.base = k.float("rope.freq_base_swa", p.localRope.base)
	}
	p.experts, p.expertsUsed = k.size("expert_count", 0), k.sizes("expert_used_count", p.blocks, 0)
	if p.experts > 0 {
		score := max(g.Score, scoreSoftmax)
		if p.expertScore = k.size("expert_gating_func", score); p.expertScore == 0 {
			p.expertScore = score
		}
		if p.expertScore > scoreChosen {
			k.fail(errUnsupported, "%q is %d, want 1 to %d", p.arch+".expert_gating_func", p.expertScore, scoreChosen)
		}
		p.expertNormed, p.expertScale = k.flag("expert_weights_norm", g.Normed), k.float("expert_weights_scale", 1)
		groups, used := k.size("expert_group_count", 0), k.size("expert_group_used_count", 0)
		if g.Grouped {
			p.expertGroups, p.expertGroupsUsed = groups, used
		}
	}
	k.ignore("expert_feed_forward_length", "expert_shared_count", "expert_shared_feed_forward_length",
		"leading_dense_block_count", "moe_latent_size", "interleave_moe_layer_step")
	k.ignore(g.Also...)
	if p.keyLen == 0 && g.Mixer == nil || p.ropeDim > p.keyLen || p.keyLen > 1<<14 {
		k.fail(errBroken, "%d of %d values of a key are turned", p.ropeDim, p.keyLen)
	}
	if p.ropeDim%2 != 0 {
		k.fail(errUnsupported, "%d values of a key are turned, want an even number", p.ropeDim)
	}
	return p
}
