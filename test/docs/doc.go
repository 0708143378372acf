// Package docs has the test that runs the commands of README.md and docs: every
// block of every document, in order, in a folder that looks like the repository after
// make demo, and compares what they print with what the document shows.
//
//	go test ./test/docs            # in builds with vector kernels
//	go test ./test/docs -update    # writes what they print today into the documents
package docs
