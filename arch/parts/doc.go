// Package parts has the building blocks that tables of several architectures share: metadata rows, tensor rows,
// conditions, transforms, lists of keys, parts and arrangements of graphs, tokenizers.
//
// A name that only one family of models uses belongs in that family's file in
// package arch.
package parts
