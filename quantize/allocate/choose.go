package allocate

import (
	"cmp"
	"math"
	"slices"
)

// option is a type of a tensor: cost in bytes, or the reverse (MinimizeBytes).
type option struct{ cost, loss float64 }

// solution is one option for each group.
type solution struct {
	chosen     []int
	cost, loss float64
	// within bounds how much smaller the loss could be; 0 if it is the minimum.
	within float64
}

// maxStates is the maximum number of partial solutions. Tests set it.
var maxStates = 1 << 21

// state is a choice for the first groups.
type state struct {
	cost, loss float64
	above      float64 // by how much it is above the bound, see leastLoss
	parent     int32   // in the stage before
	option     int32   // of the last group
}

// leastLoss returns the choice of one option from each group with the smallest sum of losses,
// among the choices whose sum of costs is at most limit. ok is false if there is none.
//
// It is exact (multiple-choice knapsack). With price the Lagrange multiplier of the relaxed problem, the minimum of
// loss + price*cost over all groups is a lower bound, and no completion of a partial choice can reduce its distance
// above the bound. So partial choices farther above it than a known choice are dropped, as are those that others beat
// in cost and loss. Where more than maxStates remain, those farthest from the bound are dropped, and within bounds the
// effect.
func leastLoss(groups [][]option, limit float64) (s solution, ok bool) {
	fronts := make([][]int, len(groups)) // Pareto-optimal options, by rising cost
	for g, options := range groups {
		if fronts[g] = front(options); len(fronts[g]) == 0 {
			return s, false
		}
	}
	start := solution{chosen: make([]int, len(groups))}
	for g, f := range fronts {
		start.chosen[g] = f[0]
	}
	start.sum(groups)
	if start.cost > limit {
		return s, false
	}
	price, base := relax(groups, fronts, start, limit)
	best := fill(groups, fronts, base, limit)
	if price == 0 {
		return best, true // the largest of all
	}

	// Distances above the bound, and the options that attain it.
	n := len(groups)
	above := make([][]float64, n)
	pick := make([]int, n)
	bound := -price * limit
	for g, options := range groups {
		lowest := math.Inf(1)
		for _, i := range fronts[g] {
			if v := options[i].loss + float64(price*options[i].cost); v < lowest {
				lowest, pick[g] = v, i
			}
		}
		bound += lowest
		above[g] = make([]float64, len(options))
		for _, i := range fronts[g] {
			above[g][i] = max(0, options[i].loss+float64(price*options[i].cost)-lowest)
		}
	}
	slack := func() float64 { return best.loss - bound + 1e-9*math.Abs(best.loss) }
	// Groups with the most to choose from at the end: the best choice known gets better on the way.
	order := make([]int, n)
	for g := range order {
		order[g] = g
	}
	few := func(g int) (second float64) {
		second = math.Inf(1)
		for _, i := range fronts[g] {
			if i != pick[g] {
				second = min(second, above[g][i])
			}
		}
		return second
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(few(b), few(a)) })
	restCost, restLoss, restLeast := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for k := n - 1; k >= 0; k-- {
		g := order[k]
		restCost[k] = restCost[k+1] + groups[g][pick[g]].cost
		restLoss[k] = restLoss[k+1] + groups[g][pick[g]].loss
		restLeast[k] = restLeast[k+1] + groups[g][fronts[g][0]].cost
	}
	dropped := math.Inf(1)
	stages := [][]state{{{}}}
	at, from := -1, 0 // the state that the best choice completes, of stage from
	for k, g := range order {
		last := stages[k]
		var next []state
		for p := range last {
			for _, i := range fronts[g] {
				o := groups[g][i]
				t := state{last[p].cost + o.cost, last[p].loss + o.loss, last[p].above + above[g][i],
					int32(p), int32(i)}
				if t.above <= slack() && t.cost+restLeast[k+1] <= limit {
					next = append(next, t)
				}
			}
		}
		slices.SortStableFunc(next, func(a, b state) int {
			return cmp.Or(cmp.Compare(a.cost, b.cost),
				cmp.Compare(a.loss, b.loss))
		})
		kept := next[:0]
		for _, t := range next {
			if len(kept) == 0 || t.loss < kept[len(kept)-1].loss {
				kept = append(kept, t)
			}
		}
		if len(kept) > maxStates {
			limits := make([]float64, len(kept))
			for i := range kept {
				limits[i] = kept[i].above
			}
			slices.Sort(limits)
			dropped = min(dropped, limits[maxStates])
			most := limits[maxStates-1]
			kept = slices.DeleteFunc(kept, func(t state) bool { return t.above > most })
		}
		kept = slices.Clip(slices.Clone(kept))
		stages = append(stages, kept)
		for p, t := range kept {
			if cost, loss := t.cost+restCost[k+1], t.loss+restLoss[k+1]; cost <= limit && loss < best.loss {
				best.cost, best.loss = cost, loss
				at, from = p, k+1
			}
		}
	}
	if from > 0 {
		copy(best.chosen, pick)
		for k := from; k > 0; k-- {
			t := stages[k][at]
			best.chosen[order[k-1]] = int(t.option)
			at = int(t.parent)
		}
		best.sum(groups)
	}
	best.within = max(0, best.loss-bound-dropped)
	return best, true
}

// sum sets cost and loss to those of the chosen types.
func (s *solution) sum(groups [][]option) {
	s.cost, s.loss = 0, 0
	for g, i := range s.chosen {
		s.cost += groups[g][i].cost
		s.loss += groups[g][i].loss
	}
}

// front returns the Pareto-optimal options by rising cost.
func front(options []option) []int {
	var order []int
	for i, o := range options {
		if !math.IsNaN(o.loss) && !math.IsInf(o.loss, 0) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(options[a].cost, options[b].cost), cmp.Compare(options[a].loss, options[b].loss))
	})
	kept := order[:0]
	for _, i := range order {
		if len(kept) == 0 || options[i].loss < options[kept[len(kept)-1]].loss {
			kept = append(kept, i)
		}
	}
	return kept
}

// step is one from an option to the next one on the lower hull of a group.
type step struct {
	group, to int
	cost      float64
	slope     float64 // loss that is saved for each unit of cost
}

// relax starts from the cheapest choice and takes steps by falling slope as long as they fit. It returns the slope of
// the first that does not fit, 0 if all do, and the choice.
func relax(groups [][]option, fronts [][]int, s solution, limit float64) (price float64, _ solution) {
	var steps []step
	for g, f := range fronts {
		hull := f[:1:1]
		for _, i := range f[1:] {
			for len(hull) > 1 && slope(groups[g], hull[len(hull)-2], hull[len(hull)-1]) <= slope(groups[g],
				hull[len(hull)-1], i) {
				hull = hull[:len(hull)-1]
			}
			hull = append(hull, i)
		}
		for k, i := range hull[1:] {
			steps = append(steps, step{g, i, groups[g][i].cost - groups[g][hull[k]].cost, slope(groups[g], hull[k], i)})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.slope, a.slope) })
	cost := s.cost
	for _, t := range steps {
		if cost+t.cost > limit {
			s.sum(groups)
			return t.slope, s
		}
		cost += t.cost
		s.chosen[t.group] = t.to
	}
	s.sum(groups)
	return 0, s
}

func slope(options []option, a, b int) float64 {
	return (options[a].loss - options[b].loss) / (options[b].cost - options[a].cost)
}

// fill improves a choice within the limit, greedily by saved loss.
func fill(groups [][]option, fronts [][]int, s solution, limit float64) solution {
	for {
		group, to, most := -1, 0, 0.0
		for g, f := range fronts {
			now := groups[g][s.chosen[g]]
			for _, i := range f {
				if o := groups[g][i]; s.cost-now.cost+o.cost <= limit && now.loss-o.loss > most {
					group, to, most = g, i, now.loss-o.loss
				}
			}
		}
		if group < 0 {
			return s
		}
		s.chosen[group] = to
		s.sum(groups)
	}
}
