package sign_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/publish/sign"
)

// A program verifies a folder.
func ExampleBundle_Verify() {
	trust, err := sign.TrustKey("testdata/P-256/public.pem")
	if err != nil {
		log.Fatal(err)
	}
	bundle, err := sign.Read("testdata/P-256/model/model.sig")
	if err != nil {
		log.Fatal(err)
	}
	signed, err := bundle.Verify(trust)
	if err != nil {
		log.Fatal(err)
	}
	findings, err := signed.Compare(context.Background(), "testdata/P-256/model", nil, sign.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(signed.Files), "files,", len(findings), "findings")
	// Output: 2 files, 0 findings
}
