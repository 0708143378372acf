package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

// embedTexts have several lengths, two of them the same; the last is longer than sliding windows and than the distances
// with their own bucket of relative position bias.
var embedTexts = []string{"The quick brown fox jumps over the lazy dog.", "yes", "no",
	"What does a river say to the sea, and who would listen?",
	strings.Repeat("Seven silver swans swam silently seaward; 42 of them sang. ", 9)}

// TestEmbed compares vectors of texts with those of the real runtime, which runs the same weights in float32: of
// every spec of an encoder, and of other models whose file asks for a kind of pooling; each with every kind. The
// runtime's GELU has a table of 16 bits. Values may differ by a few times the effect of rounding weights.
func TestEmbed(t *testing.T) {
	start(t)
	everyModel(t, "embeddings", false, sameVectors)
}

// sameVectors compares vectors of texts with the runtime's for a file.
func sameVectors(t *testing.T, file string) {
	t.Helper()
	m, err := model.Open(root + file)
	must(t, err)
	defer m.Close()
	e := runnable(t, m, file)
	if _, ok := m.Metadata.Get(m.Architecture() + ".pooling_type"); e.Predicts() && !ok {
		skip(t, "") // it predicts tokens
	}
	if slices.ContainsFunc(m.Tensors, func(x model.Tensor) bool { return x.Type != gguf.TypeF32 }) {
		skip(t, "the runtime rounds what is multiplied by weights of another type than F32")
	}
	skipWrong(t, m)
	perturbedModel, err := eval.New(perturbed(t, m))
	must(t, err)
	if !e.Predicts() {
		file = bidirectional(t, m)
	}
	voc, err := vocab.New(m.Metadata)
	must(t, err)
	places := 500
	if v, ok := m.Metadata.Get(m.Architecture() + ".context_length"); ok {
		if n, ok := v.Int(); ok {
			places = min(places, int(n))
		}
	}
	var texts [][]int32
	for _, text := range embedTexts {
		ids, err := voc.Encode(text, vocab.Options{AddSpecial: true, ParseSpecial: true})
		must(t, err)
		if len(ids) <= places {
			texts = append(texts, ids)
		}
	}
	for _, p := range []eval.Pooling{eval.PoolNone, eval.PoolMean, eval.PoolCLS, eval.PoolLast, eval.PoolRank} {
		for _, norm := range []int{-1, 2, 0, 1, 3} {
			if norm != -1 && p != eval.PoolMean {
				continue
			}
			n, err := eval.ParseNorm(norm)
			must(t, err)
			got, err := e.Embed(context.Background(), texts, eval.EmbedOptions{Pooling: p, Norm: n, Workers: 2,
				HalfGELU: true})
			if (p == eval.PoolRank || decides(m) && p != eval.PoolNone) && errors.Is(err, fault.Unsupported) {
				continue
			}
			must(t, err)
			// Where the runtime rounds, sums in another order may be rounded the other way.
			exact, err := e.Embed(context.Background(), texts, eval.EmbedOptions{Pooling: p, Norm: n, Workers: 2})
			must(t, err)
			limit := 2e-3
			if p != eval.PoolNone && reflect.DeepEqual(exact, got) { // values of a single token may nearly cancel
				limit = 1e-5
			}
			other, err := perturbedModel.Embed(context.Background(), texts, eval.EmbedOptions{Pooling: p, Norm: n,
				Workers: 2, HalfGELU: true})
			must(t, err)
			want := runtimeVectors(t, file, p, norm, len(texts))
			worst, cos := 0.0, 1.0
			for i := range texts {
				noise, _ := distance(other.Texts[i], got.Texts[i])
				limit = max(limit, min(8*noise, 1e-2))
			}
			for i := range texts {
				if p == eval.PoolRank { // the runtime's further values are not scores
					want[i] = want[i][:min(len(want[i]), got.Width)]
				}
				if len(got.Texts[i]) != len(want[i]) {
					t.Fatalf("%v: text %d has %d values, want %d", p, i, len(got.Texts[i]), len(want[i]))
				}
				d, c := distance(got.Texts[i], want[i])
				worst, cos = max(worst, d), min(cos, c)
			}
			t.Logf("%v, norm %d, %d values: largest difference %.2g of the largest value, cosine 1 - %.2g; at most %.2g", p, norm, got.Width, worst, 1-cos, limit)
			if !(worst < limit && cos > 1-1e-6) {
				t.Errorf("%v, norm %d: largest difference %v of the largest value, cosine %v; first %.6v, want %.6v", p,
					norm, worst, cos, got.Texts[0][:min(6, got.Width)], want[0][:min(6, got.Width)])
			}
		}
	}
}

// decides reports whether a model has a decision head. The runtime gives scores of its tokens, whatever pooling it is
// asked for.
func decides(m *model.Model) bool {
	_, ok := m.Metadata.Get(m.Architecture() + ".decision.block_count")
	return ok
}

// bidirectional writes a model with attention.causal = false,
// which the runtime's server does not assume for every encoder, and returns the file's
// path in the chroot. The encoder of T5, whose decoder has no embeddings, is written alone. A model with a decision head
// gets a mask token, which marks options in prompts, and without which the server does not load it.
func bidirectional(t *testing.T, m *model.Model) string {
	t.Helper()
	file := work + "/encoder.gguf"
	out := &writer.File{Path: root + file, Metadata: slices.Clone(m.Metadata)}
	if m.Architecture() == "t5" {
		out.Metadata = gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("t5encoder")}}
		for _, kv := range m.Metadata {
			if name, ok := strings.CutPrefix(kv.Key, "t5."); ok {
				out.Metadata.Set("t5encoder."+name, kv.Value)
			} else if kv.Key != gguf.KeyArchitecture {
				out.Metadata.Set(kv.Key, kv.Value)
			}
		}
	}
	out.Metadata.Set(out.Metadata.Architecture()+".attention.causal", gguf.Bool(false))
	if _, ok := m.Metadata.Get("tokenizer.ggml.mask_token_id"); !ok && decides(m) {
		out.Metadata.Set("tokenizer.ggml.mask_token_id", gguf.Uint32(0))
	}
	for _, x := range m.Tensors {
		if strings.HasPrefix(x.Name, "dec.") {
			continue
		}
		out.Tensors = append(out.Tensors, writer.Tensor{Name: x.Name, Type: x.Type, Source: x.Source})
	}
	_, err := writer.Write(context.Background(), out, writer.Options{Force: true})
	must(t, err)
	return file
}

// distance returns the largest difference of two vectors in units of the largest value, and
// their cosine.
func distance(a, b []float32) (worst, cos float64) {
	var ab, aa, bb, most float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		worst, most = max(worst, math.Abs(x-y)), max(most, math.Abs(y))
	}
	return worst / most, ab / math.Sqrt(aa*bb)
}

// runtimeVectors returns the vectors of n of embedTexts by the real runtime's server.
func runtimeVectors(t *testing.T, file string, p eval.Pooling, norm, n int) [][]float32 {
	t.Helper()
	socket := work + "/server.sock"
	os.Remove(root + socket)
	argv := append([]string{root, "llama-server", "-m", file, "--embedding", "--pooling", p.String(), "--host", socket,
		"--no-webui", "--offline", "-np", "1", "-c", "512", "-b", "512", "-ub", "512"}, exactPath...)
	cmd := exec.Command("chroot", argv...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		cmd.Process.Kill()
		<-done
		os.Remove(root + socket)
	}()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error) {
		return net.Dial("unix", root+socket)
	}}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(time.Minute); ; {
		if r, err := client.Get("http://runtime/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case err := <-done:
			done <- err
			skip(t, fmt.Sprintf("the runtime: %v: %s", err, complaints(log.Bytes())))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("the runtime does not answer\n%s", complaints(log.Bytes()))
		}
	}
	var all [][]float32
	for _, text := range embedTexts[:n] {
		body, err := json.Marshal(map[string]any{"content": text, "embd_normalize": norm})
		must(t, err)
		r, err := client.Post("http://runtime/embedding", "application/json", bytes.NewReader(body))
		if err != nil {
			skip(t, fmt.Sprintf("the runtime: %v: %s", err, complaints(log.Bytes())))
		}
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		must(t, err)
		var answer []struct{ Embedding [][]float32 }
		if err := json.Unmarshal(data, &answer); err != nil || len(answer) != 1 {
			skip(t, fmt.Sprintf("the runtime: %s", strings.TrimSpace(string(data[:min(len(data), 300)]))))
		}
		all = append(all, slices.Concat(answer[0].Embedding...))
	}
	return all
}
