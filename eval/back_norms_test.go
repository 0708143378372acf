package eval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ggforge/model"
)

// TestNormGradientBits checks that gradients w.r.t. the weights of norms have the same bits in every build, at every
// width of vectors and with any number of workers; and that those of all norms are reported. That they are right is
// checked by TestGradients.
func TestNormGradientBits(t *testing.T) {
	smallBlocks(t)
	models := map[string]*model.Model{"qwen35": smallRecurrent("qwen35"), "jamba": smallRecurrent("jamba"),
		"falcon-h1": smallRecurrent("falcon-h1")}
	for _, c := range backModels {
		models[c.name] = made(c.arch, c.shape)
	}
	for _, workers := range []int{1, 3} {
		sum := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(models)) {
			m, err := New(models[name])
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			g := Gradients{Run: backRun, Norms: func(tensor string, d []float64) error {
				if found[tensor] {
					t.Errorf("%s: %s is reported twice", name, tensor)
				}
				found[tensor] = true
				sum.Write([]byte(tensor))
				return binary.Write(sum, binary.LittleEndian, d)
			}}
			g.Workers = workers
			if _, err := m.Backward(context.Background(), g); err != nil {
				t.Fatal(err)
			}
			for i := range models[name].Tensors {
				if x := models[name].Tensors[i].Name; strings.HasSuffix(x, "norm.weight") && !found[x] {
					t.Errorf("%s: no gradient of %s", name, x)
				}
			}
		}
		if got, want := fmt.Sprintf("%x", sum.Sum(nil)[:6]), "5b7e2913623d"; got != want {
			t.Errorf("%d workers: %s, want %s", workers, got, want)
		}
	}
}
