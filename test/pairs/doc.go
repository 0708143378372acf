// Package pairs runs every two features of the commands one after the other, in both orders, in one folder with a
// real small model, and checks that nothing is lost and that each result is right or refused. Each feature by itself
// has tests next to its command; this package tests two together.
//
// It has only tests and data: features_test.go has a row for each feature (what it reads, the commands that it takes,
// what it writes, what a model is afterwards), and the pairs, the runs and the checks are made from the rows.
//
//	a row ──► a folder after a ─┬─► then     b reads what a has written
//	                            ├─► onto     as before, and b is told to write there, with --force
//	                            ├─► over     b reads what there was, and is told to write where a has written
//	                            ├─► force    the same with --force
//	                            └─► around   b between the beginning of a, which was killed or is one part of
//	                                         two, and its end; or between a release and the same again
//
// What holds after each run:
//
//   - A command that fails has a documented exit code from 2 to 7 and a message, and has changed nothing: every
//     file has its name and its content, and none is new. Exit code 1, for failed input or output, is never right
//     here.
//   - A command that ends well has written the files that its row names, no others, and has changed none but those
//     that its row replaces, or that it was told to replace by --force.
//   - A model is determined by its lineage: the list of changes to its tensors; changes to the rest of the file
//     (metadata, shards, byte order) are beside it. Of each lineage there is a model that was made the straight way,
//     in a folder of its own: one little-endian file without edits, padded before anything else. Every tensor has to
//     have its type, dimensions and bytes, every key its value but for those that were edited; package verify has to
//     find nothing.
//   - Everything else, such as a figure, an importance matrix, a card or a folder of safetensors files, equals
//     the result of the same feature for that model.
//
// The outcomes of each pair are in testdata/pairs.txt, one line a pair, which is reviewed by people, so that a change
// of behaviour shows there. The table in docs/reliability.md is made from it.
//
//	make pairs                          # all; the tests run a tenth of them
//	go test ./test/pairs -update    # after a change of a row or of behaviour; read the difference
package pairs
