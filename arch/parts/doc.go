// Package parts holds what the tables of several architectures are put together
// from: metadata rows, tensor rows, conditions, transforms and lists of keys.
//
// A name that only one family of models uses belongs in that family's file in
// package arch.
package parts
