package arch

import (
	"slices"

	_ "ggforge/arch/diffusion" // limits of its files
	"ggforge/arch/graph"
)

func init() { graph.Provide(graphNames, Graph) }

// graphNames returns the architectures for which Graph has a graph, in any order.
func graphNames() []string {
	var names []string
	for _, a := range All() {
		for _, t := range append(slices.Clone(a.Variants), a) {
			if t.Graph != nil && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}
