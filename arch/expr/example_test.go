package expr_test

import (
	"fmt"

	"ggforge/arch/expr"
)

// The length of a head's keys, from metadata without a key for it.
func Example() {
	keys := map[string]int64{"embedding_length": 4096, "attention.head_count": 32}
	e, err := expr.Parse("@attention.key_length or @embedding_length / @attention.head_count")
	if err != nil {
		fmt.Println(err)
		return
	}
	var env expr.Env
	env.Key = func(_ byte, key string) (expr.Value, bool) {
		n, ok := keys[key]
		if ok {
			env.Use(key)
		}
		return expr.Int(n), ok
	}
	v, ok := e.Eval(&env)
	fmt.Println(v.Float(), ok, env.Used)
	// Output: 128 true [embedding_length attention.head_count]
}
