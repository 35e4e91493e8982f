package intent

import (
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
)

// Resolve is what the model asks of every port. f must have loaded without errors.
func Resolve(f *model.Fabric) (*Net, diag.List) { return &Net{Fabric: f.Name.V}, nil }
