package graph

import (
	"slices"
	"strings"
)

// Model is what files of one architecture compute: tokens → Embed → Layer, once for each layer → Final → Head. Of an
// encoder-decoder that is the encoder.
type Model struct {
	Dims    Dims      // sizes that differ from Common
	Embed   Embedding // of tokens
	Prefix  string    // of the names of tensors of layers: "enc." for T5
	Norm    NormKind  // of all norms
	Layer   []Step    // one layer
	Streams Streams   // nil for one residual stream
	Loop    Loop      // the order in which layers run; nil: each once, one after the other
	// Adapters add to the projections of all layers; nil for none.
	Adapters Adapters
	Draft    []Step // one MTP (NextN) layer, after its projection; nil for Layer
	Final    []Step // after the last layer: usually a norm
	Head     Head
	Second   Second // a second stack of layers, nil for none
	// Reads are the keys of ByName that llama.cpp reads in files of the architecture; and with "!", keys of any kind
	// without which it does not load a file.
	Reads   []string
	Folds   bool     // weights may be folded with Hadamard matrices: see Fold
	Unread  []string // keys, and tensors without ".weight", that change nothing; "dec.*" is all that begin with "dec."
	Runtime []Quirk  // deviations of llama.cpp's runtime from the graph that change sizes
}

// Ignores reports whether Unread has a name: a key without the architecture's name, or a tensor without the layer's
// ("blk.N.").
func (m *Model) Ignores(name string) bool {
	name = strings.TrimSuffix(name, ".weight")
	for _, u := range m.Unread {
		if prefix, ok := strings.CutSuffix(u, "*"); ok && strings.HasPrefix(name, prefix) ||
			name == strings.TrimSuffix(u, ".weight") {
			return true
		}
	}
	return false
}

// ByName are keys that llama.cpp reads in files of some architectures only, though they have the part that is about
// them. In files of others they count as missing.
//
// Source: the keys that libllama 0.7.0 passed to gguf_find_key as it loaded the made-up model of every architecture.
var ByName = []string{
	"attention.scale", "attention.recurrent_layers", "full_attention_interval",
	"expert_gating_func", "expert_weights_norm", "expert_weights_scale", "rope.dimension_sections", "rope.scaling.alpha",
	"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
	"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_log_multiplier", "ssm.dt_b_c_rms", "ssm.group_count",
}

// Reading returns a copy of the model with more keys in Reads.
func (m *Model) Reading(keys ...string) *Model {
	c := *m
	c.Reads = slices.Concat(m.Reads, keys)
	return &c
}

// Counts reports whether a key counts in files of the architecture: whether it is not one of ByName, or one of Reads.
func (m *Model) Counts(key string) bool {
	return !slices.Contains(ByName, key) || slices.Contains(m.Reads, key) || slices.Contains(m.Reads, key+"!")
}

// Embedding is the residual stream before the first layer: Scale · E[token] + E'[position] + E"[type], normalized.
type Embedding struct {
	Scale     Num      // "" for 1
	Positions Presence // learned positions (position_embd)
	Types     bool     // token types (token_types): tokens of a text have the first one
	Norm      Norm
}

func (e Embedding) asks() []Num {
	var keys []Num
	if e.Positions != No {
		keys = append(keys, "@context_length")
	}
	if e.Types {
		keys = append(keys, tokenTypes)
	}
	return keys
}

// Presence is whether a file has something.
type Presence int

const (
	No Presence = iota
	Yes
	May // the file decides
)

// NormKind is the kind of a model's norms: RMS norm or, if Centered, layer norm.
type NormKind struct {
	Centered bool
	Eps      Num
	OrRMS    Num // the epsilon of RMS norm, which files with that key have instead; "" for none
	Groups   Num // of values of the stream that are normalized apart; "" for 1
}

// The usual kinds.
var (
	RMS       = NormKind{Eps: "@attention.layer_norm_rms_epsilon"}
	LayerNorm = NormKind{Centered: true, Eps: "@attention.layer_norm_epsilon"}
)

// Norm is a norm with the weights Name.weight, and Name.bias if the file has it. The zero value is no norm.
type Norm struct {
	Name string
	Eps  Num // "" for the model's
}

// Bare is a norm without weights (OLMo, HRM-Text).
var Bare = Norm{Name: "-"}

// Streams is how a model has several residual streams instead of one.
type Streams interface{ streams() }

// AltUp has altup.num_inputs streams (Gemma 3n). They begin with the embedding e, and with altup_proj_s·e scaled to the
// length of e. Each layer predicts all from all, by altup_predict_coef; its steps run on the prediction of the first one,
// and the difference that they make corrects all, by altup_correct_coef. Coefficients depend on the stream by a router,
// tanh(altup_router·(norm(x)/n_embd)). An update from embeddings of the layer's own, as in PerLayerEmbedding, is computed
// from the first stream times altup_correct_scale and added to the others. After the last layer all become one: the mean
// of the first one and of altup_unembd_proj_s·x_s scaled to its length.
type AltUp struct{ Act Activation }

// HyperConnections has hyper_connection.count streams (Hunyuan 4), which are copies of the embedding at first. The
// parts of Connected and Mixed read a sum of all. After the last layer they become one, Σ p_s·x_s, as in Connected
// with output_hc_fn, output_hc_base and output_hc_scale or, if Mean, their mean (GLM 5.3 Flash).
type HyperConnections struct{ Mean bool }

// AttentionResiduals keeps the stream before every attn_res.block_size-th layer, from the first one on (Kimi K3). The
// parts of Attended read a weighted sum of the stream and of what is kept. So does what follows the last layer, with the
// scores of output_res_score.
type AttentionResiduals struct{}

func (AltUp) streams()              {}
func (HyperConnections) streams()   {}
func (AttentionResiduals) streams() {}

func (HyperConnections) asks() []Num { return []Num{hyperCount, hyperEps} }

func (Connected) asks() []Num { return []Num{hyperCount, hyperEps, "@hyper_connection.magnitude"} }

func (AttentionResiduals) asks() []Num { return []Num{keptEvery} }
func (Mixed) asks() []Num              { return []Num{hyperCount, hyperEps, sinkhorn} }

const (
	keptEvery  Num = "@attn_res.block_size"
	hyperCount Num = "@hyper_connection.count"
	hyperEps   Num = "@hyper_connection.epsilon"
	sinkhorn   Num = "@hyper_connection.sinkhorn_iterations"
)

func (AltUp) asks() []Num {
	return []Num{altUpInputs, "@altup.active_idx", "@embedding_length_per_layer_input"}
}

const altUpInputs Num = "@altup.num_inputs"

// Step is a change of the residual stream.
type Step interface{ step() }

// Residual adds the output of a part: x = Sum(Carry · x + Scale · Post(Part(Pre(x)))). Pre alone is pre-norm, Pre and Post are
// sandwich norms, Post alone is the order of OLMo 2, Sum alone is post-norm as in BERT.
type Residual struct {
	Pre   Norm
	Part  Part
	Post  Norm
	Sum   Norm
	Scale Num // "" for 1
	Carry Num // "" for 1
}

// Parallel adds the outputs of several parts that read the same stream (GPT-J, Falcon, Command R).
type Parallel []Residual

// AddInput adds the layer's input once more and normalizes, in layers whose norm the file has (JinaBERT v2 for code).
type AddInput struct{ Norm Norm }

// FromInput is Residual whose part reads the layer's input instead of the stream (Arctic's experts).
type FromInput struct{ Residual }

// FromUpdate is Residual whose part reads what the step before it, a Residual, has added instead of the stream
// (Chameleon with swin_norm).
type FromUpdate struct{ Residual }

// Connected is Residual of all n streams x_s of HyperConnections: its part reads Σ p_s·x_s, and q_s times its output is
// added to each. p_s is σ(scale_0·m_s + base_s) + ε, q_s is magnitude·σ(scale_1·m_{n+s} + base_{n+s}) + ε, where m is
// hc_NAME_fn·rms(x) of all streams in a row.
type Connected struct {
	Name string // ffn: tensors are hc_ffn_fn, hc_ffn_base and hc_ffn_scale
	Residual
}

// Attended is Residual of AttentionResiduals: its part reads Σ p_s·x_s over the stream and the kept ones, p being the
// softmax over the sums of NAME_res_score·rms(x_s). If Keeps, the stream of the layers that keep it goes on without what it
// was before: it becomes the output of the part.
type Attended struct {
	Name  string // ffn: the tensor is ffn_res_score
	Keeps bool   // what the layer keeps is the stream before this step
	Residual
}

// Mixed is Connected whose streams are mixed, too: stream s becomes q_s times the output plus Σ C_sr·x_r. q_s is
// 2·σ(scale_1·m_{n+s} + base_{n+s}); C_sr is made from scale_2·m_{2n+rn+s} + base_{2n+rn+s} by softmax over s, plus
// ε, and by dividing by the sums over r and over s in turns, hyper_connection.sinkhorn_iterations times (manifold-
// constrained hyper-connections, DeepSeek V4).
type Mixed struct {
	Name string // as in Connected
	Residual
}

// AddEmbedding adds the stream before the first layer times the value of a tensor (Talkie).
type AddEmbedding struct{ Tensor string }

// Normalize replaces the stream by its norm.
type Normalize struct{ Norm }

// ScaleStream multiplies the stream by a number, LearnedScale by the value of a tensor, if the file has it.
type (
	ScaleStream  struct{ By Num }
	LearnedScale struct{ Tensor string }
)

// PerLayerEmbedding adds an update from embeddings of the layer's own (Gemma 3n and 4):
// proj(act(inp_gate·x) ⊙ ((norm(P·e) + √n·E_l[token]) / √2)), normalized. e is the embedding of the token, n is
// embedding_length_per_layer_input; where that is 0 or missing, nothing is added.
type PerLayerEmbedding struct {
	Act      Activation
	Computed bool // there is no table of embeddings: only norm(P·e) in place of the sum over √2 (EmbeddingGemma 2)
}

func (PerLayerEmbedding) asks() []Num { return []Num{"@embedding_length_per_layer_input"} }

// ChooseStep has the steps of each kind of layer: those of the first case that holds, none without such a case.
type ChooseStep []StepCase

// StepCase is one case of ChooseStep.
type StepCase struct {
	In    Layers
	Steps []Step
}

func (Residual) step()          {}
func (Parallel) step()          {}
func (AddInput) step()          {}
func (FromInput) step()         {}
func (FromUpdate) step()        {}
func (AddEmbedding) step()      {}
func (Connected) step()         {}
func (Attended) step()          {}
func (Mixed) step()             {}
func (Normalize) step()         {}
func (ScaleStream) step()       {}
func (LearnedScale) step()      {}
func (PerLayerEmbedding) step() {}
func (ChooseStep) step()        {}

// Part computes an update of the residual stream: a mixer, in which tokens attend to each other, or a feed-forward
// network.
type Part interface {
	part()
	// Declare adds what the part needs in the current layer of d: tensors with their roles, and the cache or state.
	Declare(d *Decl)
}

// Choose has the part of each kind of layer: that of the first case that holds, Nothing without such a case.
type Choose []Case

// Case is one case of Choose.
type Case struct {
	In   Layers
	Then Part
}

// Sum is the sum of the outputs of parts with the same input (Falcon H1: attention and Mamba 2).
type Sum []Part

// Normed is a part with norms of its own, in a Sum (Gemma 4): Post(Part(Pre(x))).
type Normed struct {
	Pre  Norm
	Part Part
	Post Norm
}

// Scaled is the output of a part times a number.
type Scaled struct {
	By   Num
	Part Part
}

// Matrix is a product with one matrix, from n_embd to n_embd values (layers of DeciLM in place of attention).
type Matrix struct{ Name string }

// laurelRank is the rank of Laurel that llama.cpp loads.
const laurelRank = 64

// Laurel is x + norm(laurel_r·laurel_l·x), two matrices of low rank with the norm laurel_post_norm (Gemma 3n).
type Laurel struct{}

// Nothing adds nothing.
type Nothing struct{}

func (Choose) part()  {}
func (Sum) part()     {}
func (Normed) part()  {}
func (Scaled) part()  {}
func (Matrix) part()  {}
func (Laurel) part()  {}
func (Nothing) part() {}

// Declare is Part.Declare of the chosen part.
func (c Choose) Declare(d *Decl) { d.part(d.Part(c)) }

// Declare is Part.Declare of all parts.
func (s Sum) Declare(d *Decl) {
	for _, p := range s {
		d.part(d.Part(p))
	}
}

// Declare is Part.Declare.
func (n Normed) Declare(d *Decl) {
	d.norm(n.Pre)
	d.part(d.Part(n.Part))
	d.norm(n.Post)
}

// Declare is Part.Declare.
func (s Scaled) Declare(d *Decl) {
	d.checkNumbers(s.By)
	d.part(d.Part(s.Part))
}

// Declare is Part.Declare.
func (m Matrix) Declare(d *Decl) {
	embd := d.Size("n_embd")
	d.linear(Yes, m.Name, AttnOutRole, embd, embd)
}

// Declare is Part.Declare.
func (Laurel) Declare(d *Decl) {
	embd := d.Size("n_embd")
	d.linear(Yes, "laurel_l", KernelRole, embd, laurelRank)
	d.linear(Yes, "laurel_r", KernelRole, laurelRank, embd)
	d.vector(Yes, "laurel_post_norm", embd)
}

// Declare adds nothing.
func (Nothing) Declare(*Decl) {}

// Head computes results from the last states.
type Head interface{ head() }

// LM computes logits with output or, in files without it, with the token embeddings (tied embeddings).
type LM struct {
	Scale   Num  // factor of logits; "" for 1
	SoftCap Num  // logits are c·tanh(x/c); "" or 0 for no cap
	Codes   bool // output has rows for codes of sound instead of tokens: texts have no probability (Qwen3-TTS)
	// Never are the tokens whose logits are -math.MaxFloat32, whatever output computes; zero for none.
	Never TokenRange
	// Rank is the classifier of files with cls tensors; nil: states are pooled by pooling_type and go through tanh.
	Rank Classifier
}

// TokenRange is the tokens from From up to the one before End.
type TokenRange struct{ From, End int }

// Pool is the head of an encoder: states are pooled by pooling_type, dense modules and a classifier may follow.
type Pool struct {
	Projected bool // states are output·x, of embedding_length_out values (EmbeddingGemma 2)
	Rank      Classifier
}

// Classifier is the default of classification in files with cls, cls.norm and cls.output: keys below classifier. have
// precedence.
type Classifier interface{ classifier() }

// MeanGELU pools by the mean, and applies GELU (ModernBERT).
type MeanGELU struct{}

// LastSoftmax reads the last token; scores are probabilities (rerankers made from Qwen3).
type LastSoftmax struct{}

func (MeanGELU) classifier()    {}
func (LastSoftmax) classifier() {}

func (LM) head()   {}
func (Pool) head() {}

// headKeys are keys of any head.
var headKeys = []Num{"@pooling_type", "@classifier.pooling_type", "@classifier.activation", "@classifier.output_labels",
	"@embedding_length_out", "@dense_2_feat_in", "@dense_2_feat_out", "@dense_3_feat_in", "@dense_3_feat_out"}

func (LM) asks() []Num   { return headKeys }
func (Pool) asks() []Num { return headKeys }

// Quirk is a deviation of llama.cpp's runtime from the graph; quirks.go has all.
type Quirk interface{ quirk() }
