// Argovalidate compares a file with a Workflow with the rules of Argo's controller: names, templates, variables.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/argoproj/argo-workflows/v4/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v4/util/logging"
	"github.com/argoproj/argo-workflows/v4/workflow/validate"
	"sigs.k8s.io/yaml"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	var w v1alpha1.Workflow
	if err == nil {
		err = yaml.UnmarshalStrict(data, &w)
	}
	if err == nil {
		ctx := logging.WithLogger(context.Background(), logging.NewSlogLogger(logging.Error, logging.Text))
		err = validate.ValidateWorkflow(ctx, nil, nil, &w, nil, validate.ValidateOpts{Lint: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
