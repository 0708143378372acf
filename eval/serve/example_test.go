package serve_test

import (
	"fmt"

	"ggforge/eval/serve"
)

// Requests of other machines need an address that is not local.
func ExampleLocal() {
	fmt.Println(serve.Local("127.0.0.1:8080"), serve.Local("0.0.0.0:8080"))
	// Output: true false
}
