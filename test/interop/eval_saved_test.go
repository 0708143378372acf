package interop

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// sameTop matches the last line of llama-perplexity --kl-divergence.
var sameTop = regexp.MustCompile(`Same top p: .*%`)

// TestSavedBase compares the figures of ggeval compare --kl-divergence-base with those of llama-perplexity, which has
// saved the probabilities of the base, gets the decoded weights of the model, and runs its exact path.
func TestSavedBase(t *testing.T) {
	o := start(t)
	const chunk, chunks = "256", "4"
	f32, importance, text := o.calibrated(t)
	base := work + "/base.kld"
	os.Remove(root + base)
	// to the end: the tool writes its figure last
	o.perplexity(t, finalEstimate, "-m", f32, "-f", text, "-c", chunk, "-b", chunk, "--chunks", chunks,
		"--save-all-logits", base)
	for _, recipe := range []string{"Q8_0", "Q4_K_M", "IQ2_XXS"} {
		t.Run(recipe, func(t *testing.T) {
			file, decoded := work+"/saved.gguf", work+"/decoded.gguf"
			ours(t, "ggquant", "--force", "--progress", "none", "--imatrix", root+importance, root+f32,
				root+file, recipe)
			os.Remove(root + decoded)
			o.tool(t, "llama-quantize", "--allow-requantize", file, decoded, "F32")
			printed := o.perplexity(t, sameTop, "-m", decoded, "-c", chunk, "-b", chunk,
				"--kl-divergence", "--kl-divergence-base", base)
			out := ours(t, "ggeval", "compare", "--kl-divergence-base", root+base, "--json", "--progress", "none",
				root+file, "-t", "2")
			others := sync.OnceValue(func() (all []string) {
				for _, b := range backends(t) {
					out, err := b.command(append([]string{"timeout", "120", "llama-perplexity", "-m",
						decoded, "-c", chunk,
						"-b", chunk, "--kl-divergence", "--kl-divergence-base", base},
						exactPath...)...).CombinedOutput()
					if err == nil && sameTop.Match(out) {
						all = append(all, string(out))
					}
				}
				return all
			})
			var r struct {
				Base   struct{ PPL, PPL_Error float64 }
				Models []map[string]json.RawMessage
			}
			must(t, json.Unmarshal([]byte(out), &r))
			figure := func(name, key string) float64 {
				raw := r.Models[0][name]
				if key != "" {
					var fields map[string]float64
					must(t, json.Unmarshal(raw, &fields))
					return fields[key]
				}
				v, err := strconv.ParseFloat(string(raw), 64)
				must(t, err)
				return v
			}
			for label, got := range map[string][]float64{
				"Mean PPL(Q) ":          {figure("ppl", ""), figure("ppl_error", "")},
				"Mean PPL(base) ":       {r.Base.PPL, r.Base.PPL_Error},
				"Mean PPL(Q)/PPL(base)": {figure("ppl_ratio", "mean"), figure("ppl_ratio", "error")},
				"Mean    KLD":           {figure("kl_divergence", "mean"), figure("kl_divergence", "error")},
				"Maximum KLD":           {figure("kl_divergence", "max")},
				"99.9%   KLD":           {figure("kl_divergence", "p99_9")},
				"99.0%   KLD":           {figure("kl_divergence", "p99")},
				"95.0%   KLD":           {figure("kl_divergence", "p95")},
				"90.0%   KLD":           {figure("kl_divergence", "p90")},
				"Median  KLD":           {figure("kl_divergence", "median")},
				"10.0%   KLD":           {figure("kl_divergence", "p10")},
				" 5.0%   KLD":           {figure("kl_divergence", "p5")},
				" 1.0%   KLD":           {figure("kl_divergence", "p1")},
				"Minimum KLD":           {figure("kl_divergence", "min")},
				"Cor(ln(PPL(Q))":        {100 * figure("loss_correlation", "")},
				"Maximum Δp":            {100 * figure("p_change", "max")},
				"99.9%   Δp":            {100 * figure("p_change", "p99_9")},
				"99.0%   Δp":            {100 * figure("p_change", "p99")},
				"95.0%   Δp":            {100 * figure("p_change", "p95")},
				"90.0%   Δp":            {100 * figure("p_change", "p90")},
				"75.0%   Δp":            {100 * figure("p_change", "p75")},
				"Median  Δp":            {100 * figure("p_change", "median")},
				"25.0%   Δp":            {100 * figure("p_change", "p25")},
				"10.0%   Δp":            {100 * figure("p_change", "p10")},
				" 5.0%   Δp":            {100 * figure("p_change", "p5")},
				" 1.0%   Δp":            {100 * figure("p_change", "p1")},
				" 0.1%   Δp":            {100 * figure("p_change", "p0_1")},
				"Minimum Δp":            {100 * figure("p_change", "min")},
				"Mean    Δp":            {100 * figure("p_change", "mean"), 100 * figure("p_change", "error")},
				"RMS Δp ":               {100 * figure("p_change_rms", "mean"), 100 * figure("p_change_rms", "error")},
				"Same top p":            {100 * figure("same_top", "mean"), 100 * figure("same_top", "error")},
			} {
				want := figuresOf(t, printed, label)
				if len(want) != len(got) {
					t.Fatalf("%s: %v", label, want)
				}
				for i, w := range want {
					low, high, most := printedRange(t, label, w)
					if got[i] < low-most || got[i] > high+most {
						for _, v := range others() { // in digits beyond float32 the kernels for different CPUs differ
							l, h, _ := printedRange(t, label, figuresOf(t, v, label)[i])
							low, high = min(low, l), max(high, h)
						}
						t.Logf("%s: the kernels for other CPUs print %v to %v", label, low, high)
					}
					if got[i] < low-most || got[i] > high+most {
						t.Errorf("%s: %.9f, the runtime prints %s", label, got[i], w)
					}
				}
				t.Logf("%s: %.7f, the runtime's %s", label, got, want)
			}
		})
	}
}

// TestSaveLogits has llama-perplexity read what ggeval perplexity --save-logits writes: its figures are those that it
// has from its own file. Logits differ in the last bits, and codes of 16 bits by one, so figures may differ in the last
// digits that are printed.
func TestSaveLogits(t *testing.T) {
	o := start(t)
	const chunk, chunks = "256", "4"
	f32, _, text := o.calibrated(t)
	theirs, made, model := work+"/theirs.kld", work+"/ours.kld", work+"/saved.gguf"
	os.Remove(root + theirs)
	o.perplexity(t, finalEstimate, "-m", f32, "-f", text, "-c", chunk, "-b", chunk, "--chunks", chunks,
		"--save-all-logits", theirs)
	ours(t, "ggeval", "perplexity", root+f32, "-f", root+text, "-c", chunk, "--chunks", chunks, "--save-logits",
		root+made, "--force", "--progress", "none")
	a, err := os.ReadFile(root + theirs)
	must(t, err)
	b, err := os.ReadFile(root + made)
	must(t, err)
	n, err := strconv.Atoi(chunk)
	must(t, err)
	if head := 20 + 4*4*n; len(a) != len(b) || string(a[:head]) != string(b[:head]) {
		t.Errorf("%d bytes, the tool writes %d; or sizes and tokens differ", len(b), len(a))
	}
	ours(t, "ggquant", "--force", "--progress", "none", root+f32, root+model, "Q4_K_M")
	compare := func(base string) string {
		return o.perplexity(t, sameTop, "-m", model, "-c", chunk, "-b", chunk, "--kl-divergence", "--kl-divergence-base",
			base)
	}
	want, got := compare(theirs), compare(made)
	for _, label := range []string{"Mean PPL(Q) ", "Mean PPL(base) ", "Mean    KLD", "Maximum KLD", "99.9%   KLD",
		"Median  KLD", "Mean    Δp", "RMS Δp ", "Same top p"} {
		w, g := figuresOf(t, want, label), figuresOf(t, got, label)
		for i := range w {
			x, err := strconv.ParseFloat(w[i], 64)
			must(t, err)
			y, err := strconv.ParseFloat(g[i], 64)
			must(t, err)
			if math.Abs(x-y) > 1e-6+1e-4*math.Abs(x) {
				t.Errorf("%s: %s from our file, %s from the tool's", label, g, w)
			}
		}
		t.Logf("%s: %s, from the tool's own file %s", label, g, w)
	}
}

// printedRange returns the value of a printed figure, as a range, and how far ours may be from it.
func printedRange(t *testing.T, label, w string) (low, high, most float64) {
	t.Helper()
	digits := len(w) - strings.IndexByte(w, '.') - 1
	v, err := strconv.ParseFloat(w, 64)
	must(t, err)
	most = 0.51*math.Pow10(-digits) + 1e-6*math.Abs(v)
	if strings.HasSuffix(label, "KLD") && !strings.HasPrefix(label, "Mean") {
		// the tool sums each position's divergence, and interpolates quantiles, in float32
		most += 1e-6 + 1e-5*math.Abs(v)
	}
	if strings.HasSuffix(label, "Δp") && !strings.HasPrefix(label, "Mean") {
		most += 2e-5 // percent: the tool has probabilities, and interpolates quantiles, in float32
	}
	return v, v, most
}

// perplexity runs the real tool on its exact path until its output matches last: it writes from another thread and
// sometimes ends before the last line.
func (o *oracle) perplexity(t *testing.T, last *regexp.Regexp, argv ...string) string {
	t.Helper()
	argv = append(append([]string{root, "timeout", "120", "llama-perplexity"}, argv...), exactPath...)
	var out []byte
	for range 8 {
		var err error
		if out, err = exec.Command("chroot", argv...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		if last.Match(out) {
			return string(out)
		}
	}
	t.Fatalf("nothing matches %s in\n%s", last, out)
	return ""
}

// figuresOf returns the figure that is printed after a label, and its error if there is one.
func figuresOf(t *testing.T, printed, label string) []string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if rest, ok := strings.CutPrefix(line, label); ok {
			_, rest, _ = strings.Cut(rest, ":")
			fields := strings.Fields(strings.TrimSuffix(strings.TrimSpace(rest), "%"))
			if len(fields) == 3 && fields[1] == "±" {
				return []string{fields[0], fields[2]}
			}
			return fields
		}
	}
	t.Fatalf("no %s in\n%s", label, printed)
	return nil
}
