// A module of its own: what writes kernels is not part of what users of the library get.
module ggforge/quants/_generate

go 1.26
