package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/model"
)

// finalEstimate matches the last line of llama-perplexity.
var finalEstimate = regexp.MustCompile(`Final estimate: PPL = (\S+) \+/- (\S+)`)

// exactPath are the arguments with which the runtime computes in float32.
var exactPath = []string{"-ctk", "f32", "-ctv", "f32", "-fa", "off", "-t", "1", "-ngl", "0", "--no-warmup",
	"--no-repack"}

// TestEvaluate compares perplexities over a text with those of the real runtime, which
// runs the same weights in float32, for every spec of an architecture that can be run.
func TestEvaluate(t *testing.T) {
	o := start(t)
	text := work + "/text.txt"
	must(t, os.WriteFile(root+text, []byte(evalWords), 0o666))
	everyModel(t, "perplexity", false, func(t *testing.T, file string) { o.evaluate(t, file, text, 64, 6) })
}

// evaluate compares the perplexity of a file with the runtime's, which gets its weights
// decoded to float32.
func (o *oracle) evaluate(t *testing.T, file, text string, chunk, chunks int) {
	t.Helper()
	m, err := model.Open(root + file)
	must(t, err)
	defer m.Close()
	tokens := runtimeTokens(t, m, file, text, chunk, chunks)
	e := runnable(t, m, file)
	if !e.Predicts() {
		skip(t, "") // an encoder: TestEmbed
	}
	skipWrong(t, m)
	run := eval.Run{Tokens: tokens, Chunk: chunk, Workers: 2, HalfGELU: true}
	got, err := e.Perplexity(context.Background(), run)
	must(t, err)
	other := func() *eval.Perplexity {
		p, err := runnable(t, perturbed(t, m), file).Perplexity(context.Background(), run)
		must(t, err)
		return p
	}
	samePerplexity(t, got, other, o.decoded(t, m, file), text, chunk, chunks)
}

// skipWrong skips a model that the runtime computes wrong.
func skipWrong(t *testing.T, m *model.Model) {
	t.Helper()
	switch name := m.Architecture(); {
	case strings.HasSuffix(t.Name(), "grovemoe/edge"):
		skip(t, "states of 1e24, whose squares the runtime's RMS norm adds up in float32: all its logits are 0")
	case name == "plamo2":
		if v, ok := m.Metadata.Get(name + ".attention.head_count"); ok {
			for first := range v.Elems() {
				if n, _ := first.Int(); n == 0 {
					skip(t, "the runtime does not finish if the first layer has no attention, because its RoPE is of 0 "+
						"values; with the first two layers exchanged perplexities are equal (TestEvaluateSized)")
				}
				break
			}
		}
	case strings.HasSuffix(name, "rwkv7"):
		v, _ := m.Metadata.Get(name + ".wkv.head_size")
		if n, _ := v.Int(); n%64 != 0 {
			skip(t, fmt.Sprintf(
				"heads of %d: the runtime's kernel takes 64 values at a time, whatever the size of a head, so that "+
					"it fails or reads what lies next to them", n))
		}
	}
}

func rounded(x model.Tensor) bool { return x.Type != gguf.TypeF32 && x.Type != gguf.TypeI32 }

// runtimeTokens returns the tokens of whole chunks of a text, each with the token that the
// runtime puts at its beginning.
func runtimeTokens(t *testing.T, m *model.Model, file, text string, chunk, chunks int) []int32 {
	t.Helper()
	out, err := exec.Command("chroot", root, "llama-tokenize", "-m", file, "-f", text, "--ids", "--no-parse-special",
		"--no-escape", "--log-disable").Output()
	if err != nil {
		skip(t, "the runtime cannot load the file")
	}
	var ids []int32
	must(t, json.Unmarshal(out, &ids))
	if len(ids) < chunk*chunks {
		t.Fatalf("%d tokens", len(ids))
	}
	ids = ids[:chunk*chunks]
	if v, ok := m.Metadata.Get("tokenizer.ggml.add_bos_token"); ok {
		add, _ := v.Bool()
		b, _ := m.Metadata.Get("tokenizer.ggml.bos_token_id")
		if id, ok := b.Int(); add && ok {
			for i := 0; i < len(ids); i += chunk {
				ids[i] = int32(id)
			}
		}
	}
	return ids
}

// samePerplexity compares with the figure of the real runtime for a file and a text, to
// the digits that it prints, or, where float32 does not carry as many, to the range of its
// kernels for all CPUs that this one can run, wider by eight times the difference of other, the figure of perturbed
// weights, or a ten-thousandth. other may be nil.
func samePerplexity(t *testing.T, got *eval.Perplexity, other func() *eval.Perplexity, file, text string, chunk,
	chunks int) {
	t.Helper()
	want, margin := runtimePerplexity(t, file, text, chunk, chunks)
	t.Logf("%.6f +/- %.6f, the runtime's %.4f +/- %.5f", got.Value, got.Error, want, margin)
	if want > 1e6 && got.Value > 1e6 {
		skip(t, "degenerate weights")
	}
	low, high, lowMargin, highMargin := want, want, margin, margin
	same := func() bool {
		return got.Value >= low-1e-5*want-5e-5 && got.Value <= high+1e-5*want+5e-5 &&
			got.Error >= lowMargin-1e-4*margin-5e-5 && got.Error <= highMargin+1e-4*margin+5e-5
	}
	if same() {
		return
	}
	for _, b := range backends(t) {
		if v, e, err := b.perplexity(file, text, chunk, chunks); err == nil {
			low, high, lowMargin, highMargin = min(low, v), max(high, v), min(lowMargin, e), max(highMargin, e)
		}
	}
	t.Logf("llama.cpp's kernels for other CPUs compute %.4f to %.4f +/- %.5f to %.5f", low, high, lowMargin, highMargin)
	if other != nil && !same() {
		o := other()
		noise, marginNoise := 8*math.Abs(got.Value-o.Value), 8*math.Abs(got.Error-o.Error)
		t.Logf("eight times what rounding of weights changes: %.5f +/- %.6f", noise, marginNoise)
		noise, marginNoise = min(noise, 1e-4*want), min(marginNoise, 1e-4*want)
		low, high, lowMargin, highMargin = low-noise, high+noise, lowMargin-marginNoise, highMargin+marginNoise
		if off := math.Abs(got.Value-o.Value) / want; !same() && slices.ContainsFunc(unstable, func(name string) bool {
			return strings.HasSuffix(t.Name(), name)
		}) && off > 1e-3 && math.Abs(got.Value-want) < 8*off*want {
			skip(t, fmt.Sprintf("rounding of weights changes the perplexity by up to %.1g of its value", off))
		}
	}
	if !same() {
		t.Errorf("perplexity %.6f +/- %.6f, want %.4f +/- %.5f", got.Value, got.Error, want, margin)
	}
}

// unstable are the models whose perplexity changes by more than a thousandth if weights change in their last bits: those
// of hadamard/edge are at the ends of F16, and the sums of the transform have the large and the ordinary ones in one.
var unstable = []string{"hadamard/edge"}

// runtimePerplexity returns what llama-perplexity prints for the first chunks of a text, and
// its error.
func runtimePerplexity(t *testing.T, file, text string, chunk, chunks int) (value, margin float64) {
	t.Helper()
	value, margin, err := backend("").perplexity(file, text, chunk, chunks)
	switch {
	case errors.Is(err, errNoFigure):
		t.Fatal(err)
	case err != nil:
		skip(t, err)
	}
	return value, margin
}

var errNoFigure = errors.New("llama-perplexity prints no figure")

// allLogits are the architectures for which the runtime computes the logits of all tokens though it is asked for some:
// llama-perplexity reads those of the first tokens instead. llama-imatrix asks for all, and prints the same figure.
var allLogits = []string{"cogvlm"}

// oneByOne are the architectures for which the runtime has to compute one token at a time: in a batch it replaces the
// logits of Chameleon's image tokens for the first output only, and it cannot compute a batch without outputs, as
// llama-perplexity has them. llama-imatrix asks for the outputs of all tokens.
var oneByOne = []string{"chameleon"}

// perplexity returns what llama-perplexity prints with the backend.
func (b backend) perplexity(file, text string, chunk, chunks int) (value, margin float64, err error) {
	m, err := model.Open(root + file)
	if err != nil {
		return 0, 0, err
	}
	defer m.Close()
	c := strconv.Itoa(chunk)
	argv := append([]string{"timeout", "120", "llama-perplexity", "-m", file, "-f", text, "-c", c, "-b", c,
		"--chunks", strconv.Itoa(chunks)}, exactPath...)
	single := slices.Contains(oneByOne, m.Architecture())
	if single {
		argv = append(argv, "-b", "1")
	}
	if single || slices.Contains(allLogits, m.Architecture()) {
		argv = slices.DeleteFunc(argv, func(s string) bool { return s == "--no-warmup" })
		argv[2] = "llama-imatrix"
		argv = append(argv, "-o", work+"/ref.imatrix")
	}
	var out []byte
	for range 8 { // it prints from another thread, and sometimes ends before it prints the last line
		if out, err = b.command(argv...).CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("the runtime: %s", complaints(out))
		}
		if m := finalEstimate.FindSubmatch(out); m != nil {
			if value, err = strconv.ParseFloat(string(m[1]), 64); err == nil {
				margin, err = strconv.ParseFloat(string(m[2]), 64)
			}
			return value, margin, err
		}
	}
	return 0, 0, fmt.Errorf("%w in\n%s", errNoFigure, complaints(out))
}
