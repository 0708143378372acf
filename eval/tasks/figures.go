package tasks

import (
	"math"

	"ggforge/eval"
)

// z95 is the quantile of the normal distribution for two-sided intervals of 95 %, as llama-perplexity writes it.
const z95 = 1.95996398454005423552

// Accuracy returns the share of right tasks among n and its standard error, √(p(1-p)/(n-1)).
func Accuracy(right, n int) eval.Figure {
	p := float64(right) / float64(n)
	return eval.Figure{Mean: p, Error: math.Sqrt(p * (1 - p) / float64(n-1))}
}

// Interval returns Wilson's interval of 95 % for the share of right tasks among n.
func Interval(right, n int) (low, high float64) {
	f, count := float64(right)/float64(n), float64(n)
	z := z95 * z95 / count
	half := z * math.Sqrt(count*(4*f*(1-f)+z)) / (2 * z95)
	return (f + z/2 - half) / (1 + z), (f + z/2 + half) / (1 + z)
}

// Chance returns the share of right tasks that a random choice would give, by the number of all answers, and its
// standard error.
func Chance(list []Task) eval.Figure {
	answers := 0
	for i := range list {
		answers += len(list[i].Answers)
	}
	p, n := float64(len(list))/float64(answers), float64(len(list))
	return eval.Figure{Mean: p, Error: math.Sqrt(p * (1 - p) / (n - 1))}
}

// Change is how the outcomes of a model differ from those of a base.
type Change struct {
	Lost, Gained int         // tasks that only the base has right, and only the model
	Accuracy     eval.Figure // difference, with the error of paired tasks
	Margin       eval.Figure // mean difference of Outcome.Margin
}

// Compare returns how outcomes of a model differ from those of a base over the same tasks.
func Compare(list []Task, base, model []Outcome) Change {
	var c Change
	var margins []float64
	for i := range base {
		switch {
		case base[i].Right && !model[i].Right:
			c.Lost++
		case !base[i].Right && model[i].Right:
			c.Gained++
		}
		if d := model[i].Margin(&list[i]) - base[i].Margin(&list[i]); !math.IsNaN(d) && !math.IsInf(d, 0) {
			margins = append(margins, d)
		}
	}
	n, d := float64(len(base)), float64(c.Gained-c.Lost)
	c.Accuracy = eval.Figure{Mean: d / n, Error: math.Sqrt(float64(c.Lost+c.Gained)-d*d/n) / n}
	c.Margin = mean(margins)
	return c
}

// Margin returns by how much the largest mean of a right answer is above that of a wrong one; infinite if there are no
// right answers, or no wrong ones.
func (o *Outcome) Margin(t *Task) float64 {
	right, wrong := math.Inf(-1), math.Inf(-1)
	for i, v := range o.Means {
		if t.Right[i] {
			right = math.Max(right, v)
		} else {
			wrong = math.Max(wrong, v)
		}
	}
	return right - wrong
}

// mean returns the mean of values and its standard error.
func mean(values []float64) eval.Figure {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	n := float64(len(values))
	f := eval.Figure{Mean: sum / n}
	for _, v := range values {
		squares += (v - f.Mean) * (v - f.Mean)
	}
	f.Error = math.Sqrt(squares / n / (n - 1))
	return f
}

// RightBySum reports whether the answer with the largest sum of ln p is right: the accuracy of lm-evaluation-harness
// named acc. RightByBytes is that by the sum divided by the bytes of the answer, acc_norm.
func (o *Outcome) RightBySum(t *Task) bool { return t.Right[largest(o.Sums)] }

// RightByBytes is described at RightBySum.
func (o *Outcome) RightByBytes(t *Task) bool {
	x := make([]float64, len(o.Sums))
	for i, sum := range o.Sums {
		x[i] = sum / float64(max(1, o.Bytes[i]))
	}
	return t.Right[largest(x)]
}
