package registrytest_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

func TestModelConforms(t *testing.T) {
	registrytest.TestPlanner(t, func(*testing.T) registry.Planner {
		return registrytest.NewModel(registrytest.BaseRelations()...)
	}, registrytest.Subset{Dialect: true})
}
