package eval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
)

const (
	encoderKeys = `
		block_count 2
		context_length 128
		embedding_length 32
		feed_forward_length 48
		attention.head_count 4
		attention.layer_norm_epsilon 1e-5
		attention.causal false
		`
	encoderNorms = `
		= token_embd_norm 32
		= token_embd_norm.bias 32
		= token_types 32 2
		attn_output_norm 32
		attn_output_norm.bias 32
		layer_output_norm 32
		layer_output_norm.bias 32
		`
	encoderFeed = `
		ffn_up 32 48
		ffn_up.bias 48
		ffn_down 48 32
		ffn_down.bias 32
		`
	fusedHeads = `
		attn_qkv 32 96
		attn_output 32 32
		`
)

// encoders are small models that have embeddings, and a hash of the bits of the embeddings of some texts. without are
// tensors that listed adds, but that the model does not have.
var encoders = []struct {
	name, arch, keys, tensors string
	without                   []string
	pooling                   Pooling
	width                     int
	want                      string
}{
	{"post-norm", "bert", encoderKeys, encoderNorms + encoderFeed + `
		= position_embd 32 128
		attn_q 32 32
		attn_q.bias 32
		attn_k 32 32
		attn_k.bias 32
		attn_v 32 32
		attn_v.bias 32
		attn_output 32 32
		attn_output.bias 32
		`, []string{"output", "output_norm"}, PoolMean, 32, "4aa609a7bcc5"},
	{"classifier", "bert", encoderKeys + "pooling_type 4\n", encoderNorms + encoderFeed + fusedHeads + `
		= position_embd 32 128
		= cls 32 32
		= cls.bias 32
		= cls.output.weight 32 3
		= cls.output.bias 3
		`, []string{"output", "output_norm"}, PoolRank, 3, "99506dbd594c"},
	{"experts in some layers", "nomic-bert-moe", encoderKeys + `
		rope.freq_base 1000.0
		moe_every_n_layers 2
		expert_count 4
		expert_used_count 2
		`, encoderNorms + fusedHeads + `
		0: ffn_up 32 48
		0: ffn_down 48 32
		1: ffn_gate_inp 32 4
		1: ffn_up_exps 32 48 4
		1: ffn_down_exps 48 32 4
		`, []string{"output", "output_norm"}, PoolMean, 32, "e7b73a152b63"},
	{"ALiBi, two norms", "jina-bert-v2", encoderKeys, encoderNorms + fusedHeads + `
		attn_q_norm 32
		attn_q_norm.bias 32
		attn_k_norm 32
		attn_k_norm.bias 32
		attn_norm_2 32
		attn_norm_2.bias 32
		ffn_up 32 96
		ffn_down 48 32
		ffn_down.bias 32
		`, []string{"output", "output_norm"}, PoolMean, 32, "3a40389b90e3"},
	{"symmetric windows", "modern-bert", encoderKeys + `
		attention.sliding_window 10
		hidden_activation gelu
		classifier.activation gelu
		`, fusedHeads + `
		= token_embd_norm 32
		= cls 32 32
		= cls.norm.weight 32
		= cls.output.weight 32 2
		1: attn_norm 32
		ffn_norm 32
		ffn_up 32 96
		ffn_down 48 32
		`, []string{"output"}, PoolRank, 2, "2265e864113d"},
	{"scores of a decision head", "modern-bert", strings.Replace(encoderKeys, "block_count 2", "block_count 4", 1) + `
		attention.sliding_window 10
		hidden_activation gelu
		decision.type laya
		decision.block_count 2
		`, fusedHeads + `
		= token_embd_norm 32
		= token_types 32 3
		= cls 32 32
		= cls.bias 32
		= cls.norm.weight 32
		= cls.norm.bias 32
		= cls.output.weight 32 1
		= cls.output.bias 1
		1,2,3: attn_norm 32
		2,3: attn_norm.bias 32
		2,3: attn_qkv.bias 96
		2,3: attn_output.bias 32
		ffn_norm 32
		2,3: ffn_norm.bias 32
		0,1: ffn_up 32 96
		2,3: ffn_up 32 48
		2,3: ffn_up.bias 48
		ffn_down 48 32
		2,3: ffn_down.bias 32
		`, []string{"output"}, PoolNone, 3, "9729fa48fefb"},
	{"relative position bias", "t5encoder", encoderKeys + `
		attention.key_length 8
		attention.relative_buckets_count 32
		attention.layer_norm_rms_epsilon 1e-6
		`, `
		= enc.output_norm.weight 32
		= enc.blk.0.attn_rel_b.weight 4 32
		` + t5Layer(0) + t5Layer(1), []string{"output", "output_norm"}, PoolMean, 32, "87039a136901"},
	{"dense layers", "gemma-embedding", usualKeys + `
		attention.head_count_kv 2
		attention.sliding_window 8
		dense_2_feat_out 48
		`, usualHeads + usualNorms + usualFeed + `
		post_attention_norm 32
		post_ffw_norm 32
		attn_q_norm 8
		attn_k_norm 8
		= dense_2 32 48
		= dense_3 48 20
		`, []string{"output"}, PoolMean, 20, "6d37c0ebc143"},
	{"the last token", "qwen3", usualKeys + "attention.head_count_kv 2\npooling_type 3\n",
		usualHeads + qkNorms + usualNorms + usualFeed, nil, PoolLast, 32, "0ce7e0b4c80b"},
	{"probabilities", "qwen3", usualKeys + "attention.head_count_kv 2\npooling_type 4\n",
		usualHeads + qkNorms + usualNorms + usualFeed + "= cls.output.weight 32 2\n", nil, PoolRank, 2, "35a91e01e231"},
	{"every token", "llama-embed", usualKeys + "attention.head_count_kv 2\n", usualHeads + usualNorms + usualFeed,
		[]string{"output"}, PoolNone, 32, "72d9396a321a"},
}

func t5Layer(i int) string {
	return strings.NewReplacer("#", fmt.Sprintf("= enc.blk.%d.", i)).Replace(`
		#attn_norm.weight 32
		#ffn_norm.weight 32
		#attn_q.weight 32 32
		#attn_k.weight 32 32
		#attn_v.weight 32 32
		#attn_o.weight 32 32
		#ffn_up.weight 32 48
		#ffn_down.weight 48 32
		`)
}

// lacking removes tensors of a model.
func lacking(m *model.Model, names ...string) *model.Model {
	m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool {
		return slices.Contains(names,
			strings.TrimSuffix(x.Name, ".weight"))
	})
	return m
}

// TestEmbed checks that the vector of a text has the same bits with any number of workers,
// next to any other texts, and in every build; that encoders are bidirectional; and that
// they do not predict.
func TestEmbed(t *testing.T) {
	ctx := context.Background()
	for _, c := range encoders {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(lacking(listed(c.arch, c.keys, c.tensors), c.without...))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.source.Metadata.Get(c.arch + ".pooling_type"); ok && m.Pooling() != c.pooling {
				t.Errorf("pooling %v, want %v", m.Pooling(), c.pooling)
			}
			ids := text(300)
			texts := [][]int32{ids[:30], ids[30:100], ids[100:101], ids[101:131], ids[131:150]}
			all, err := m.Embed(ctx, texts, EmbedOptions{Pooling: c.pooling, Norm: Unchanged, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			for i, v := range all.Texts {
				want := c.width
				if c.pooling == PoolNone {
					want *= len(texts[i])
				}
				if len(v) != want || all.Width != c.width {
					t.Fatalf("text %d has %d values of width %d, want %d", i, len(v), all.Width, want)
				}
				binary.Write(h, binary.LittleEndian, v)
			}
			if got := fmt.Sprintf("%x", h.Sum(nil)[:6]); got != c.want {
				t.Errorf("bits %s, want %s", got, c.want)
			}
			defer func(b, e int) { tokensPerBlock, embedTokens = b, e }(tokensPerBlock, embedTokens)
			tokensPerBlock, embedTokens = 40, 50
			again, err := m.Embed(ctx, texts, EmbedOptions{Pooling: c.pooling, Norm: Unchanged, Workers: 3})
			if err != nil {
				t.Fatal(err)
			}
			for i := range texts {
				if !slices.Equal(again.Texts[i], all.Texts[i]) {
					t.Errorf("text %d differs between workers and blocks", i)
				}
			}
			texts[1] = texts[1][:4]
			changed := slices.Clone(texts[1])
			changed[len(changed)-1] ^= 1
			one, err := m.Embed(ctx, [][]int32{texts[1], changed}, EmbedOptions{Norm: Unchanged})
			if err != nil {
				t.Fatal(err)
			}
			if sees := !slices.Equal(one.Texts[0][:c.width], one.Texts[1][:c.width]); sees == m.Predicts() {
				t.Errorf("the first token sees the last: %v, predicts: %v", sees, m.Predicts())
			}
			if _, err := m.Perplexity(ctx, Run{Tokens: ids[:128], Chunk: 64}); errors.Is(err,
				fault.Unsupported) == m.Predicts() {
				t.Errorf("perplexity: %v", err)
			}
			if _, err := m.Backward(ctx, Gradients{Run: Run{Tokens: ids[:128],
				Chunk: 64}}); m.Predicts() != (err == nil) || err != nil && !errors.Is(err, fault.Unsupported) {
				t.Errorf("gradients: %v", err)
			}
		})
	}
}

// TestEmbedInputs checks that inputs of linear layers are reported for encoders, too.
func TestEmbedInputs(t *testing.T) {
	c := encoders[1]
	m, err := New(lacking(listed(c.arch, c.keys, c.tensors), c.without...))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	var done float64
	_, err = m.Embed(context.Background(), [][]int32{text(20), text(5), text(20)},
		EmbedOptions{Pooling: c.pooling, Inputs: func(in Inputs) error {
			rows[in.Name] += in.Rows
			return nil
		}, Progress: func(p Progress) { done = p.Done }})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"blk.0.attn_qkv.weight": 45, "blk.1.ffn_down.weight": 45, "cls.weight": 3,
		"cls.output.weight": 3} {
		if rows[name] != want {
			t.Errorf("%s: %d rows, want %d", name, rows[name], want)
		}
	}
	if done != 1 {
		t.Errorf("%v of the work done", done)
	}
}

// TestEmbedRefused checks models and texts without embeddings.
func TestEmbedRefused(t *testing.T) {
	make := func(i int, more string, drop ...string) *model.Model {
		c := encoders[i]
		return lacking(listed(c.arch, c.keys+more, c.tensors), append(drop, c.without...)...)
	}
	for _, c := range []struct {
		m    *model.Model
		kind error
		want string
	}{
		{make(0, "pooling_type 5\n"), fault.Unsupported, `"bert.pooling_type" is 5`},
		{make(0, "classifier.pooling_type 4\n"), fault.Unsupported, `"bert.classifier.pooling_type" is`},
		{make(0, "classifier.activation other\n"), fault.Unsupported, `"bert.classifier.activation" is "other"`},
		{make(0, "", "blk.1.layer_output_norm"), fault.Broken, "blk.1.layer_output_norm"},
		{make(4, "", "blk.1.attn_norm"), fault.Broken, "blk.1.attn_norm"},
		{make(6, "attention.relative_buckets_count 30\n"), fault.Unsupported, "relative_buckets_count"},
		{make(6, "", "enc.blk.0.attn_rel_b"), fault.Broken, "enc.blk.0.attn_rel_b"},
		{make(4, "hidden_activation other\n"), fault.Unsupported, "hidden_activation"},
		{make(5, "decision.block_count 4\n"), fault.Broken, "4 layers of the head, of 4 in all"},
		{make(5, "", "blk.3.ffn_up"), fault.Broken, "blk.3.ffn_up"},
		{make(5, "", "token_types"), fault.Broken, "token_types"},
	} {
		if _, err := New(c.m); !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v, want %v: %s", err, c.kind, c.want)
		}
	}
	m, err := New(make(0, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		texts [][]int32
		p     Pooling
		kind  error
		want  string
	}{
		{[][]int32{{1}, {}}, PoolMean, fault.Refused, "text 2 has no tokens"},
		{[][]int32{text(129)}, PoolMean, fault.Refused, "129 tokens at once, want at most 128"},
		{[][]int32{{300}}, PoolMean, fault.Refused, "300"},
		{[][]int32{{1}}, PoolRank, fault.Unsupported, "no classification"},
		{[][]int32{{1}}, 7, fault.Usage, "pooling 7"},
	} {
		if _, err := m.Embed(context.Background(), c.texts, EmbedOptions{Pooling: c.p}); !errors.Is(err, c.kind) ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v, want %v: %s", err, c.kind, c.want)
		}
	}
	if m, err = New(make(5, "")); err != nil {
		t.Fatal(err)
	}
	for p := PoolMean; p <= PoolRank; p++ {
		if _, err := m.Embed(context.Background(), [][]int32{{1}}, EmbedOptions{Pooling: p}); !errors.Is(err,
			fault.Unsupported) {
			t.Errorf("%v of scores: %v", p, err)
		}
	}
	broken := make(0, "")
	for i := range broken.Tensors {
		if x := &broken.Tensors[i]; x.Name == "blk.1.ffn_down.bias" {
			*x = model.New(x.Name, encoded([]float32{float32(math.NaN()), 31: 0}, []int64{32}, gguf.TypeF32))
		}
	}
	if m, err = New(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Embed(context.Background(), [][]int32{{1, 2}}, EmbedOptions{Pooling: PoolMean}); !errors.Is(err,
		fault.Broken) {
		t.Errorf("a bias that is NaN: %v", err)
	}
}

// TestDecisionStates checks that scores of the last tokens of chunks are those of all tokens, and that progress does not
// go back between the layers and those of the head.
func TestDecisionStates(t *testing.T) {
	c := encoders[5]
	m, err := New(lacking(listed(c.arch, c.keys, c.tensors), c.without...))
	if err != nil {
		t.Fatal(err)
	}
	done := 0.0
	run := Run{Tokens: text(60), Chunk: 20, Workers: 2, Progress: func(p Progress) {
		if p.Done < done {
			t.Errorf("%v of the work done, after %v", p.Done, done)
		}
		done = p.Done
	}}
	all, err := m.Forward(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	if done != 1 {
		t.Errorf("%v of the work done", done)
	}
	run.First, run.Progress = 15, nil
	some, err := m.Forward(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for i := 0; i < 60; i += 20 {
		want = append(want, all.data[(i+15)*c.width:(i+20)*c.width]...)
	}
	if !slices.Equal(some.data, want) || some.Rows != 15 || some.width != c.width {
		t.Errorf("%d rows of %d scores: %v, want %v", some.Rows, some.width, some.data, want)
	}
}

// TestBucket compares buckets of relative positions with those of the code of T5's authors.
func TestBucket(t *testing.T) {
	for d, want := range map[int]int{0: 0, 1: 17, -1: 1, 7: 23, -7: 7, 8: 24, -8: 8, 11: 24, 12: 25, -15: 9, -16: 10,
		22: 26, 23: 27, 31: 27, 32: 28, 63: 29, 64: 30, -90: 14, 91: 31, -128: 15, 128: 31} {
		if got := bucket(d, 32, true); got != want {
			t.Errorf("distance %d is in bucket %d, want %d", d, got, want)
		}
	}
	for d, want := range map[int]int{0: 0, 5: 0, -1: 1, -15: 15, -16: 16, -17: 16, -19: 17, -22: 18, -32: 21, -64: 26,
		-100: 30, -127: 31, -128: 31} { // of a decoder
		if got := bucket(d, 32, false); got != want {
			t.Errorf("distance %d is in bucket %d of a decoder, want %d", d, got, want)
		}
	}
}

func TestNorm(t *testing.T) {
	v := []float32{3, -4, 0, 12}
	for n, want := range map[int][]float32{-1: {3, -4, 0, 12}, 0: {8190, -10920, 0, 32760},
		1: {3. / 19, -4. / 19, 0, 12. / 19}, 2: {3. / 13, -4. / 13, 0, 12. / 13},
		3: {0.2457595, -0.3276794, 0, 0.9830381}} {
		norm, err := ParseNorm(n)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(v)
		norm.apply(got)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-5*math.Abs(float64(want[i])) {
				t.Errorf("norm %d: %v, want %v", n, got, want)
			}
		}
		zero := []float32{0, 0}
		if norm.apply(zero); zero[0] != 0 {
			t.Errorf("norm %d: %v of zeros", n, zero)
		}
	}
	if _, err := ParseNorm(-2); !errors.Is(err, fault.Usage) {
		t.Error(err)
	}
	for _, name := range poolings {
		if p, err := ParsePooling(name); err != nil || p.String() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := ParsePooling("max"); !errors.Is(err, fault.Usage) {
		t.Error(err)
	}
}
