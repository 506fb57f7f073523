package doctor

import (
	"context"
	"fmt"
	"strings"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/models"
)

// checkModels tells which model providers can be asked, and by what. It shows
// names only, runs no command that prints a key, and asks no server.
func checkModels(_ context.Context, a *app.App) []Finding {
	shop, err := models.NewShop(a)
	if err != nil {
		return []Finding{{Name: "models", Grade: Bad, Found: err.Error(), Do: app.HintOf(err)}}
	}
	var list []Finding
	for _, w := range shop.Catalog.Warnings() {
		list = append(list, Finding{Name: "models.json", Grade: Warn, Found: strings.TrimPrefix(w, "models.json: ")})
	}
	if found, do := shop.Exposed(); found != "" {
		list = append(list, Finding{Name: "keys", Grade: Warn, Found: found, Do: do})
	}
	accesses, err := shop.Accesses()
	if err != nil {
		return append(list, Finding{Name: "models", Grade: Bad, Found: err.Error(), Do: "correct " + a.Layout.Credentials() + ", or move it away"})
	}
	var good []string
	for _, x := range accesses {
		if x.Wrong != "" {
			list = append(list, Finding{Name: "models", Grade: Warn, Found: fmt.Sprintf("%s (%s): %s", x.Provider, x.From, x.Wrong), Do: x.Do})
			continue
		}
		good = append(good, fmt.Sprintf("%s (%s)", x.Provider, x.From))
	}
	if len(good) > 0 {
		return append(list, Finding{Name: "models", Grade: Good, Found: strings.Join(good, ", ")})
	}
	return append(list, Finding{
		Name: "models", Grade: Warn, Found: "no key for muntin's own agent",
		Do: "run `muntin login <provider>`, such as anthropic, openai or openrouter, or set a variable such as ANTHROPIC_API_KEY; " +
			"`muntin demo`, servers on this machine and outside agents need none",
	})
}
