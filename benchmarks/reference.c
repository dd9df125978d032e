/* The units of the benchmark: single-site Gibbs sampling the way one writes it in an afternoon of C.
 *
 * One chain, one thread, sites in their own order, doubles, xoshiro256++ (Blackman and Vigna, 2021), one exp
 * of libm per update of a spin and one per state of an agreeing site. No tricks: no colors, no vectors, no tables
 * of conditionals, nothing kept from one visit to the next.
 * The generator lives in a local variable, as any compiler wants it, and goes back to `words` at the end.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_STATES 256

typedef struct {
    uint64_t a, b, c, d;
} generator;

static inline generator wake(const uint64_t *words)
{
    generator g = {words[0], words[1], words[2], words[3]};
    return g;
}

static inline void rest(const generator *g, uint64_t *words)
{
    words[0] = g->a;
    words[1] = g->b;
    words[2] = g->c;
    words[3] = g->d;
}

static inline uint64_t turn(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

/* a number in [0, 1) with 53 random bits */
static inline double unit(generator *g)
{
    uint64_t out = g->a + turn(g->a + g->d, 23);
    uint64_t shifted = g->b << 17;
    g->c ^= g->a;
    g->d ^= g->b;
    g->b ^= g->c;
    g->a ^= g->d;
    g->c ^= shifted;
    g->d = turn(g->d, 45);
    return (double)(int64_t)(out >> 11) / 9007199254740992.0;
}

/* Heat bath for p(s) ~ exp(sum_{i<j} J_ij s_i s_j + sum_i h_i s_i), s = -1 or +1.
 *
 * Neighbours of site i are neighbour[start[i] .. start[i + 1]), every pair stands in both rows.
 * ups (or NULL): how often each site was +1 at the end of a sweep.
 */
void spin_sweeps(int64_t sites, const int64_t *start, const int32_t *neighbour, const double *coupling,
                 const double *field, int8_t *spin, int64_t sweeps, uint64_t *words, uint32_t *ups)
{
    generator g = wake(words);
    for (int64_t sweep = 0; sweep < sweeps; sweep++) {
        for (int64_t i = 0; i < sites; i++) {
            double local = field[i];
            for (int64_t k = start[i]; k < start[i + 1]; k++)
                local += coupling[k] * spin[neighbour[k]];
            /* P(+1) = 1 / (1 + down), without the division, and without a branch, which nobody could foretell */
            double down = exp(-2.0 * local);
            int up = unit(&g) * (1.0 + down) < 1.0;
            spin[i] = (int8_t)(2 * up - 1);
        }
        if (ups != NULL)
            for (int64_t i = 0; i < sites; i++)
                ups[i] += spin[i] > 0;
    }
    rest(&g, words);
}

/* Heat bath for p(x) ~ exp(sum_{i<j} J_ij [x_i == x_j]), x = 0 .. states - 1, rows as above.
 *
 * visits (or NULL): how often each state of each site was drawn, the states of site i from i * states on.
 */
void agreement_sweeps(int64_t sites, int32_t states, const int64_t *start, const int32_t *neighbour,
                      const double *coupling, int32_t *x, int64_t sweeps, uint64_t *words, uint32_t *visits)
{
    double weight[MOST_STATES];
    generator g = wake(words);
    for (int64_t sweep = 0; sweep < sweeps; sweep++) {
        for (int64_t i = 0; i < sites; i++) {
            for (int32_t s = 0; s < states; s++)
                weight[s] = 0.0;
            for (int64_t k = start[i]; k < start[i + 1]; k++)
                weight[x[neighbour[k]]] += coupling[k];
            double top = weight[0], total = 0.0;
            for (int32_t s = 1; s < states; s++)
                top = weight[s] > top ? weight[s] : top;
            for (int32_t s = 0; s < states; s++)
                total += weight[s] = exp(weight[s] - top);
            double level = unit(&g) * total;
            int32_t chosen = 0;
            while (chosen < states - 1 && (level -= weight[chosen]) >= 0.0)
                chosen++;
            x[i] = chosen;
            if (visits != NULL)
                visits[i * states + chosen]++;
        }
    }
    rest(&g, words);
}

/* Heat bath for a product of tables over any number of sites.
 *
 * Site i has states[i] states and touches the factors touched[first[i] .. first[i + 1]); step[] beside it is the
 * stride of the site in that factor's table. Factor f has the scope member[scope[f] .. scope[f + 1]) with
 * strides stride[], and its table begins at value[table[f]].
 * visits (or NULL): how often each state of each site was drawn, the states of site i from cell[i] on.
 */
void table_sweeps(int64_t sites, const int32_t *states, const int64_t *first, const int32_t *touched,
                  const int32_t *step, const int64_t *scope, const int32_t *member, const int32_t *stride,
                  const int64_t *table, const double *value, const int64_t *cell, int32_t *x,
                  int64_t sweeps, uint64_t *words, uint32_t *visits)
{
    double weight[MOST_STATES];
    generator g = wake(words);
    for (int64_t sweep = 0; sweep < sweeps; sweep++) {
        for (int64_t i = 0; i < sites; i++) {
            int32_t size = states[i];
            for (int32_t s = 0; s < size; s++)
                weight[s] = 1.0;
            for (int64_t k = first[i]; k < first[i + 1]; k++) {
                int32_t f = touched[k];
                const double *entry = value + table[f];
                for (int64_t m = scope[f]; m < scope[f + 1]; m++)
                    entry += (int64_t)stride[m] * x[member[m]];
                entry -= (int64_t)step[k] * x[i];
                for (int32_t s = 0; s < size; s++)
                    weight[s] *= entry[(int64_t)step[k] * s];
            }
            double total = 0.0;
            for (int32_t s = 0; s < size; s++)
                total += weight[s];
            double level = unit(&g) * total;
            if (total > 0.0) { /* otherwise nothing is possible here: stay */
                int32_t chosen = 0;
                while (chosen < size - 1 && (level -= weight[chosen]) >= 0.0)
                    chosen++;
                x[i] = chosen;
            }
            if (visits != NULL)
                visits[cell[i] + x[i]]++;
        }
    }
    rest(&g, words);
}

/* Gibbs for a normal distribution: site i has mean center_i - sum_k weight_k x_k and standard deviation sd_i given
 * the others. Normal numbers in pairs, by Box and Muller.
 */
void normal_sweeps(int64_t sites, const int64_t *start, const int32_t *neighbour, const double *weight,
                   const double *center, const double *sd, double *x, int64_t sweeps, uint64_t *words)
{
    generator g = wake(words);
    double spare = 0.0;
    int has_spare = 0;
    for (int64_t sweep = 0; sweep < sweeps; sweep++) {
        for (int64_t i = 0; i < sites; i++) {
            double mean = center[i], z;
            for (int64_t k = start[i]; k < start[i + 1]; k++)
                mean -= weight[k] * x[neighbour[k]];
            if (has_spare) {
                z = spare;
            } else {
                double radius = sqrt(-2.0 * log(1.0 - unit(&g))), angle = 6.283185307179586 * unit(&g);
                z = radius * cos(angle);
                spare = radius * sin(angle);
            }
            has_spare = !has_spare;
            x[i] = mean + sd[i] * z;
        }
    }
    rest(&g, words);
}

/* Sum-product messages from factors to sites, in the given order, each replaced at once or, with room for the next
 * ones, all together after a sweep. Message e goes to the site of e from its factor; what another member says is the
 * product of its unary weights and of all other messages that come in there. The largest number of a message is one.
 */
void message_sweeps(int64_t messages, const int64_t *order, const int64_t *site, const int64_t *factor,
                    const int64_t *stride, const int64_t *place, const int64_t *start, const int64_t *member_start,
                    const int64_t *member, const int64_t *table, const double *value, const int64_t *card,
                    const int64_t *cell, const double *unary, double *message, double *next, int64_t numbers,
                    int64_t sweeps)
{
    double q[8][MOST_STATES], fresh[MOST_STATES];
    for (int64_t t = 0; t < sweeps * messages; t++) {
        int64_t e = order[t % messages], f = factor[e], size = card[site[e]], others = 0;
        int64_t step[8], count[8], code[8];
        for (int64_t m = member_start[f]; m < member_start[f + 1]; m++) {
            int64_t o = member[m], j = site[o];
            if (o == e)
                continue;
            for (int64_t b = 0; b < card[j]; b++) {
                double product = unary[cell[j] + b];
                for (int64_t k = start[j]; k < start[j + 1]; k++)
                    if (k != o)
                        product *= message[place[k] + b];
                q[others][b] = product;
            }
            step[others] = stride[o];
            count[others] = card[j];
            code[others] = 0;
            others++;
        }
        for (int64_t a = 0; a < size; a++)
            fresh[a] = 0.0;
        const double *entry = value + table[f];
        for (int64_t d = 0; d >= 0;) {
            double product = 1.0;
            for (int64_t k = 0; k < others; k++)
                product *= q[k][code[k]];
            for (int64_t a = 0; a < size; a++)
                fresh[a] += product * entry[stride[e] * a];
            for (d = others - 1; d >= 0; d--) { /* the next configuration of the others */
                entry += step[d];
                if (++code[d] < count[d])
                    break;
                entry -= step[d] * count[d];
                code[d] = 0;
            }
        }
        double top = 0.0;
        for (int64_t a = 0; a < size; a++)
            if (fresh[a] > top)
                top = fresh[a];
        for (int64_t a = 0; a < size; a++)
            (next != NULL ? next : message)[place[e] + a] = fresh[a] / top;
        if (next != NULL && t % messages == messages - 1)
            for (int64_t a = 0; a < numbers; a++)
                message[a] = next[a];
    }
}
