package eval

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/graph"
)

// TestChoiceGradient checks the cost of another choice of experts against its formula, for scores a known distance of
// the router's outputs apart.
func TestChoiceGradient(t *testing.T) {
	logits := []float32{0.3, -1, 0.1, 2, 0.1 - 1e-3}
	for _, c := range []struct {
		name string
		x    experts
		gap  float64
		next int
	}{
		{"softmax", experts{score: graph.Softmax, used: 2}, 0.2, 2},
		{"sigmoid", experts{score: graph.Sigmoid, used: 2}, 0.2, 2},
		{"three", experts{score: graph.Softmax, used: 3}, 1e-3, 4},
		{"softmax of chosen", experts{score: graph.SoftmaxOfChosen, used: 2}, 0.2, 2},
		{"square root", experts{score: graph.SqrtSoftplus, used: 2}, 0.2, 2},
		{"bias", experts{score: graph.SoftmaxOfChosen, used: 2, routerBias: []float32{0, 1.2, 0, 0, 0}}, 0.1, 1},
		{"groups", experts{score: graph.SoftmaxOfChosen, used: 2, groups: 5, groupsUsed: 2}, math.Inf(1), 0},
		{"table", experts{score: graph.Softmax, used: 2, table: []int32{0}}, math.Inf(1), 0},
		{"all", experts{score: graph.Softmax, used: 5}, math.Inf(1), 0},
	} {
		x := c.x
		x.n = len(logits)
		scores, chosen, dw := slices.Clone(logits), make([]choice, x.used), make([]float32, x.used)
		if err := x.choose(chosen, scores); err != nil {
			t.Fatal(err)
		}
		chosen[x.used-1].weight, dw[x.used-1] = 0.5, -3
		next, got := x.choiceGradient(dw, chosen, scores)
		want := 1.5 * math.Sqrt(math.Exp(-c.gap*c.gap/(2*0.3*0.3))/(math.Pi*0.05*0.3))
		if !(math.Abs(float64(got)-want) <= 0.02*want) || want > 0 && next != c.next {
			t.Errorf("%s: expert %d, gradient %v, want %d, %v", c.name, next, got, c.next, want)
		}
	}
}

// TestChoices checks that the cost of another choice of experts changes two gradients at the router's outputs of a token,
// by the same in both directions; that signs are as likely; and that gradients before the router change.
func TestChoices(t *testing.T) {
	const experts = 5
	m, err := New(made("llama", shape{experts: experts}))
	if err != nil {
		t.Fatal(err)
	}
	_, without := reported(t, m, Gradients{Run: backRun})
	_, with := reported(t, m, Gradients{Run: backRun, Choices: true})
	changed, up, routers := 0, 0, 0
	for name, g := range with {
		behind := strings.HasSuffix(name, "x") || name == "2" || strings.HasPrefix(name, "output") ||
			strings.HasPrefix(name, "blk.1.ffn") && strings.Contains(name, "exps")
		if slices.Equal(g, without[name]) != behind {
			t.Errorf("%s: same gradients: %v, want %v", name, !behind, behind)
		}
		if !strings.HasPrefix(name, "blk.1.ffn_gate_inp") || strings.HasSuffix(name, "x") {
			continue
		}
		routers++
		for at := 0; at < len(g); at += experts {
			var d []float64
			for i, v := range g[at:][:experts] {
				if by := float64(v) - float64(without[name][at+i]); by != 0 {
					d = append(d, by)
				}
			}
			if len(d) == 0 {
				continue
			}
			if changed++; len(d) != 2 || math.Abs(d[0]+d[1]) > 1e-3*math.Abs(d[0]) {
				t.Fatalf("token %d: gradients change by %v, want two opposite ones", at/experts, d)
			}
			if d[0] > 0 {
				up++
			}
		}
	}
	if routers != 1 || changed < 10 || up == 0 || up == changed {
		t.Errorf("%d routers, %d tokens changed, %d of them upwards", routers, changed, up)
	}
}
